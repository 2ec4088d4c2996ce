// SPDX-License-Identifier: BSD-3-Clause
/* The bytes of every message, as the RFCs draw them. */
#include "softrnic_pair.h"

static void mpa_frames_are_key_flags_revision_and_length(void **state)
{
	struct mpa_frame frame = {.flags = 0x50, .revision = 2, .priv_len = 0x0104}, got;
	struct mpa_enhanced depths = {.ird = 0xc020, .ord = 0x8010}, back;
	uint8_t buf[MPA_HDR_LEN], words[MPA_ENHANCED_LEN];

	(void)state;
	mpa_encode(buf, &frame);
	assert_memory_equal(buf, "MPA ID Req Frame\x50\x02\x01\x04", 20);
	assert_true(mpa_decode(buf, false, &got));
	assert_false(mpa_decode(buf, true, &got));
	frame.reply = true;
	mpa_encode(buf, &frame);
	assert_memory_equal(buf, "MPA ID Rep Frame\x50\x02\x01\x04", 20);
	assert_true(mpa_decode(buf, true, &got));
	assert_int_equal(got.flags, 0x50);
	assert_int_equal(got.revision, 2);
	assert_int_equal(got.priv_len, 0x104);
	mpa_encode_enhanced(words, &depths);
	assert_memory_equal(words, "\xc0\x20\x80\x10", 4);
	mpa_decode_enhanced(words, &back);
	assert_int_equal(back.ird, 0xc020);
	assert_int_equal(back.ord, 0x8010);
}

static void an_fpdu_is_padded_to_four_bytes(void **state)
{
	(void)state;
	assert_int_equal(fpdu_pad(14), 0);
	assert_int_equal(fpdu_pad(15), 3);
	assert_int_equal(fpdu_pad(16), 2);
	assert_int_equal(fpdu_pad(17), 1);
	assert_int_equal(fpdu_pad(18), 0);
}

static void a_tagged_header_is_control_stag_and_offset(void **state)
{
	struct ddp_header header = {.tagged = true,
				    .last = true,
				    .opcode = RDMAP_READ_RESPONSE,
				    .stag = 0x11223344,
				    .to = 0x0102030405060708},
			  got;
	uint8_t buf[DDP_UNTAGGED_LEN];

	(void)state;
	assert_int_equal(ddp_encode(buf, &header), 14);
	assert_memory_equal(buf, "\xc1\x42\x11\x22\x33\x44\x01\x02\x03\x04\x05\x06\x07\x08", 14);
	ddp_decode(buf, &got);
	assert_true(got.tagged && got.last);
	assert_int_equal(got.opcode, RDMAP_READ_RESPONSE);
	assert_int_equal(got.stag, 0x11223344);
	assert_true(got.to == 0x0102030405060708);
}

static void an_untagged_header_is_control_queue_msn_and_offset(void **state)
{
	struct ddp_header header = {.opcode = RDMAP_SEND_INV,
				    .stag = 0xa1a2a3a4,
				    .queue = 0,
				    .msn = 0x01020304,
				    .mo = 0x05060708},
			  got;
	uint8_t buf[DDP_UNTAGGED_LEN];

	(void)state;
	assert_int_equal(ddp_encode(buf, &header), 18);
	assert_memory_equal(
		buf, "\x01\x44\xa1\xa2\xa3\xa4\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08",
		18);
	ddp_decode(buf, &got);
	assert_false(got.tagged || got.last);
	assert_int_equal(got.msn, 0x01020304);
	assert_int_equal(got.mo, 0x05060708);
}

static void a_read_request_is_sink_size_and_source(void **state)
{
	struct rdmap_read_request request = {.sink_stag = 0x01020304,
					     .sink_to = 0x1112131415161718,
					     .size = 0x21222324,
					     .source_stag = 0x31323334,
					     .source_to = 0x4142434445464748},
				  got;
	uint8_t buf[RDMAP_READ_REQUEST_LEN];

	(void)state;
	rdmap_encode_read_request(buf, &request);
	assert_memory_equal(buf,
			    "\x01\x02\x03\x04\x11\x12\x13\x14\x15\x16\x17\x18\x21\x22\x23\x24"
			    "\x31\x32\x33\x34\x41\x42\x43\x44\x45\x46\x47\x48",
			    28);
	rdmap_decode_read_request(buf, &got);
	assert_int_equal(got.size, request.size);
	assert_true(got.sink_to == request.sink_to && got.source_to == request.source_to);
}

static void an_atomic_request_is_operation_place_data_and_masks(void **state)
{
	struct rdmap_atomic_request request = {.opcode = RDMAP_CMP_SWAP,
					       .id = 0x01020304,
					       .stag = 0x11121314,
					       .to = 0x2122232425262728,
					       .data = 0x3132333435363738,
					       .mask = UINT64_MAX,
					       .compare = 0x4142434445464748,
					       .compare_mask = UINT64_MAX},
				    got;
	uint8_t buf[RDMAP_ATOMIC_REQUEST_LEN], response[RDMAP_ATOMIC_RESPONSE_LEN];
	uint64_t original;
	uint32_t id;

	(void)state;
	rdmap_encode_atomic_request(buf, &request);
	assert_memory_equal(buf,
			    "\x00\x00\x00\x02\x01\x02\x03\x04\x11\x12\x13\x14"
			    "\x21\x22\x23\x24\x25\x26\x27\x28\x31\x32\x33\x34\x35\x36\x37\x38"
			    "\xff\xff\xff\xff\xff\xff\xff\xff\x41\x42\x43\x44\x45\x46\x47\x48"
			    "\xff\xff\xff\xff\xff\xff\xff\xff",
			    52);
	rdmap_decode_atomic_request(buf, &got);
	assert_int_equal(got.opcode, RDMAP_CMP_SWAP);
	assert_true(got.compare == request.compare && got.data == request.data);
	rdmap_encode_atomic_response(response, 7, 0x0102030405060708);
	assert_memory_equal(response, "\x00\x00\x00\x07\x01\x02\x03\x04\x05\x06\x07\x08", 12);
	rdmap_decode_atomic_response(response, &id, &original);
	assert_int_equal(id, 7);
	assert_true(original == 0x0102030405060708);
}

static void a_flush_request_is_range_type_and_level(void **state)
{
	struct rdmap_flush_request request = {.id = 3,
					      .stag = 0x11121314,
					      .to = 0x2122232425262728,
					      .size = 0x3132333435363738,
					      .type = 2,
					      .level = 1},
				   got;
	uint8_t buf[RDMAP_FLUSH_REQUEST_LEN];

	(void)state;
	rdmap_encode_flush_request(buf, &request);
	assert_memory_equal(buf,
			    "\x00\x00\x00\x03\x11\x12\x13\x14\x21\x22\x23\x24\x25\x26\x27\x28"
			    "\x31\x32\x33\x34\x35\x36\x37\x38\x02\x01\x00\x00",
			    28);
	rdmap_decode_flush_request(buf, &got);
	assert_true(got.size == request.size && got.type == 2 && got.level == 1);
}

static void a_terminate_quotes_the_headers_it_is_about(void **state)
{
	const uint8_t header[] = "\xc1\x40\x11\x22\x33\x44\x01\x02\x03\x04\x05\x06\x07\x08";
	struct rdmap_term term = {TERM_DDP, TERM_DDP_TAGGED, TERM_TAGGED_BOUNDS, header, 14, 22},
			  got;
	uint8_t buf[RDMAP_TERMINATE_MAX];

	(void)state;
	assert_int_equal(rdmap_encode_terminate(buf, &term), 20);
	assert_memory_equal(buf, "\x11\x01\xc0\x00\x00\x16\xc1\x40\x11\x22", 10);
	assert_true(rdmap_decode_terminate(buf, 20, &got));
	assert_int_equal(got.layer, TERM_DDP);
	assert_int_equal(got.etype, TERM_DDP_TAGGED);
	assert_int_equal(got.code, TERM_TAGGED_BOUNDS);
	assert_int_equal(got.header_len, 14);
	assert_false(rdmap_decode_terminate(buf, 3, &got));
	assert_true(rdmap_decode_terminate(buf, 6, &got));
	assert_null(got.header);
	term.header = NULL;
	assert_int_equal(rdmap_encode_terminate(buf, &term), 4);
	assert_memory_equal(buf, "\x11\x01\x00\x00", 4);
}

static void the_crc_is_crc32c_least_byte_first(void **state)
{
	uint8_t zeros[32] = {0}, crc[4];

	/* RFC 3720 appendix B.4: 32 bytes of zeroes give aa 36 91 8a */
	(void)state;
	crc32c_end(crc32c_add(crc32c_begin(), zeros, sizeof(zeros)), crc);
	assert_memory_equal(crc, "\xaa\x36\x91\x8a", 4);
	/* in pieces as well */
	crc32c_end(crc32c_add(crc32c_add(crc32c_begin(), zeros, 5), zeros, 27), crc);
	assert_memory_equal(crc, "\xaa\x36\x91\x8a", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mpa_frames_are_key_flags_revision_and_length),
		cmocka_unit_test(an_fpdu_is_padded_to_four_bytes),
		cmocka_unit_test(a_tagged_header_is_control_stag_and_offset),
		cmocka_unit_test(an_untagged_header_is_control_queue_msn_and_offset),
		cmocka_unit_test(a_read_request_is_sink_size_and_source),
		cmocka_unit_test(an_atomic_request_is_operation_place_data_and_masks),
		cmocka_unit_test(a_flush_request_is_range_type_and_level),
		cmocka_unit_test(a_terminate_quotes_the_headers_it_is_about),
		cmocka_unit_test(the_crc_is_crc32c_least_byte_first),
	};

	return cmocka_run_group_tests_name("softrnic_wire", tests, NULL, NULL);
}
