/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * floor: the engines' work with nothing but verbs, to measure them against.
 *
 *   floor server ADDR PORT [options]     serves one client, says "floor: ready" on stderr
 *   floor client ADDR PORT [options]     prints the I/Os per second it achieved on stdout
 *
 * Both ends must be given the same --method, --memory and --depth.
 */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "floor.h"

static int usage(void)
{
	fprintf(stderr, "usage: floor server|client ADDR PORT [--method none|read|native|gpspm]\n"
			"             [--memory malloc|PATH] [--size BYTES] [--block BYTES]\n"
			"             [--depth N] [--batch N] [--seconds S] [--warm-up S]\n"
			"             [--reads] [--think NANOSECONDS]\n");
	return 2;
}

static int method_of(const char *name, enum floor_method *method)
{
	static const char *const names[] = {
		[FLOOR_NONE] = "none",
		[FLOOR_READ] = "read",
		[FLOOR_NATIVE] = "native",
		[FLOOR_GPSPM] = "gpspm",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0) {
			*method = i;
			return 0;
		}
	}
	return -1;
}

static int parse(int argc, char **argv, struct floor_options *opt)
{
	static const struct option longs[] = {
		{"method", required_argument, NULL, 'm'},
		{"memory", required_argument, NULL, 'M'},
		{"size", required_argument, NULL, 's'},
		{"block", required_argument, NULL, 'b'},
		{"depth", required_argument, NULL, 'd'},
		{"seconds", required_argument, NULL, 't'},
		{"batch", required_argument, NULL, 'B'},
		{"reads", no_argument, NULL, 'r'},
		{"think", required_argument, NULL, 'T'},
		{"warm-up", required_argument, NULL, 'w'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'm':
			if (method_of(optarg, &opt->method))
				return -1;
			break;
		case 'M':
			opt->memory = optarg;
			break;
		case 's':
			opt->size = strtoull(optarg, NULL, 0);
			break;
		case 'b':
			opt->block = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			opt->depth = strtoul(optarg, NULL, 0);
			break;
		case 'B':
			opt->batch = strtoul(optarg, NULL, 0);
			break;
		case 't':
			opt->seconds = strtod(optarg, NULL);
			break;
		case 'w':
			opt->warm_up = strtod(optarg, NULL);
			break;
		case 'T':
			opt->think = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			opt->reads = true;
			break;
		default:
			return -1;
		}
	}
	if (argc - optind != 3)
		return -1;
	opt->server = strcmp(argv[optind], "server") == 0;
	if (!opt->server && strcmp(argv[optind], "client") != 0)
		return -1;
	opt->addr = argv[optind + 1];
	opt->port = argv[optind + 2];
	return opt->depth && opt->depth <= FLOOR_DEPTH_MAX && opt->batch && opt->block && opt->size
		       ? 0
		       : -1;
}

int main(int argc, char **argv)
{
	struct floor_options opt = {
		.method = FLOOR_READ,
		.memory = "malloc",
		.size = 64 << 20,
		.block = 4096,
		.depth = 1,
		.batch = 1,
		.seconds = 1,
		.warm_up = 0.5,
	};

	if (parse(argc, argv, &opt))
		return usage();
	return (opt.server ? floor_server(&opt) : floor_client(&opt)) ? EXIT_FAILURE : EXIT_SUCCESS;
}
