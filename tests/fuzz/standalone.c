// SPDX-License-Identifier: BSD-3-Clause
/* Runs a fuzz target over files or standard input: for AFL++, and to repeat a finding. */
#include <stdio.h>
#include <stdlib.h>

#include "softrnic_rx.h"

#define INPUT_MAX (1 << 20)

static int run(FILE *file)
{
	uint8_t *buf = malloc(INPUT_MAX);
	size_t n;

	if (!buf || !file)
		return 1;
	n = fread(buf, 1, INPUT_MAX, file);
	LLVMFuzzerTestOneInput(buf, n);
	free(buf);
	return 0;
}

int main(int argc, char **argv)
{
	FILE *file;
	int i, ret = 0;

	if (argc < 2)
		return run(stdin);
	for (i = 1; i < argc; i++) {
		file = fopen(argv[i], "rb");
		if (run(file)) {
			fprintf(stderr, "%s: cannot be read\n", argv[i]);
			ret = 1;
		}
		if (file)
			fclose(file);
	}
	return ret;
}
