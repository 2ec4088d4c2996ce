// SPDX-License-Identifier: BSD-3-Clause
/* Byte layouts of the iWARP messages (see wire.h for the RFC sections). */
#include <string.h>
#include <isa-l/crc.h>

#include "wire.h"

static const char mpa_request_key[MPA_KEY_LEN + 1] = "MPA ID Req Frame";
static const char mpa_reply_key[MPA_KEY_LEN + 1] = "MPA ID Rep Frame";

void mpa_encode(uint8_t *buf, const struct mpa_frame *frame)
{
	memcpy(buf, frame->reply ? mpa_reply_key : mpa_request_key, MPA_KEY_LEN);
	buf[16] = frame->flags;
	buf[17] = frame->revision;
	put16(buf + 18, frame->priv_len);
}

bool mpa_decode(const uint8_t *buf, bool reply, struct mpa_frame *frame)
{
	if (memcmp(buf, reply ? mpa_reply_key : mpa_request_key, MPA_KEY_LEN))
		return false;
	frame->reply = reply;
	frame->flags = buf[16];
	frame->revision = buf[17];
	frame->priv_len = get16(buf + 18);
	return true;
}

void mpa_encode_enhanced(uint8_t *buf, const struct mpa_enhanced *enhanced)
{
	put16(buf, enhanced->ird);
	put16(buf + 2, enhanced->ord);
}

void mpa_decode_enhanced(const uint8_t *buf, struct mpa_enhanced *enhanced)
{
	enhanced->ird = get16(buf);
	enhanced->ord = get16(buf + 2);
}

unsigned int ddp_encode(uint8_t *buf, const struct ddp_header *header)
{
	buf[0] = (header->tagged ? DDP_TAGGED : 0) | (header->last ? DDP_LAST : 0) | DDP_VERSION;
	buf[1] = RDMAP_VERSION | header->opcode;
	put32(buf + 2, header->stag);
	if (header->tagged) {
		put64(buf + 6, header->to);
		return DDP_TAGGED_LEN;
	}
	put32(buf + 6, header->queue);
	put32(buf + 10, header->msn);
	put32(buf + 14, header->mo);
	return DDP_UNTAGGED_LEN;
}

void ddp_decode(const uint8_t *buf, struct ddp_header *header)
{
	memset(header, 0, sizeof(*header));
	header->ddp_control = buf[0];
	header->rdmap_control = buf[1];
	header->tagged = buf[0] & DDP_TAGGED;
	header->last = buf[0] & DDP_LAST;
	header->opcode = buf[1] & RDMAP_OPCODE_MASK;
	header->stag = get32(buf + 2);
	if (header->tagged) {
		header->to = get64(buf + 6);
		return;
	}
	header->queue = get32(buf + 6);
	header->msn = get32(buf + 10);
	header->mo = get32(buf + 14);
}

void rdmap_encode_read_request(uint8_t *buf, const struct rdmap_read_request *request)
{
	put32(buf, request->sink_stag);
	put64(buf + 4, request->sink_to);
	put32(buf + 12, request->size);
	put32(buf + 16, request->source_stag);
	put64(buf + 20, request->source_to);
}

void rdmap_decode_read_request(const uint8_t *buf, struct rdmap_read_request *request)
{
	request->sink_stag = get32(buf);
	request->sink_to = get64(buf + 4);
	request->size = get32(buf + 12);
	request->source_stag = get32(buf + 16);
	request->source_to = get64(buf + 20);
}

void rdmap_encode_atomic_request(uint8_t *buf, const struct rdmap_atomic_request *request)
{
	put32(buf, request->opcode);
	put32(buf + 4, request->id);
	put32(buf + 8, request->stag);
	put64(buf + 12, request->to);
	put64(buf + 20, request->data);
	put64(buf + 28, request->mask);
	put64(buf + 36, request->compare);
	put64(buf + 44, request->compare_mask);
}

void rdmap_decode_atomic_request(const uint8_t *buf, struct rdmap_atomic_request *request)
{
	request->opcode = get32(buf) & 0xf;
	request->id = get32(buf + 4);
	request->stag = get32(buf + 8);
	request->to = get64(buf + 12);
	request->data = get64(buf + 20);
	request->mask = get64(buf + 28);
	request->compare = get64(buf + 36);
	request->compare_mask = get64(buf + 44);
}

void rdmap_encode_atomic_response(uint8_t *buf, uint32_t id, uint64_t original)
{
	put32(buf, id);
	put64(buf + 4, original);
}

void rdmap_decode_atomic_response(const uint8_t *buf, uint32_t *id, uint64_t *original)
{
	*id = get32(buf);
	*original = get64(buf + 4);
}

void rdmap_encode_flush_request(uint8_t *buf, const struct rdmap_flush_request *request)
{
	put32(buf, request->id);
	put32(buf + 4, request->stag);
	put64(buf + 8, request->to);
	put64(buf + 16, request->size);
	buf[24] = request->type;
	buf[25] = request->level;
	put16(buf + 26, 0);
}

void rdmap_decode_flush_request(const uint8_t *buf, struct rdmap_flush_request *request)
{
	request->id = get32(buf);
	request->stag = get32(buf + 4);
	request->to = get64(buf + 8);
	request->size = get64(buf + 16);
	request->type = buf[24];
	request->level = buf[25];
}

#define TERM_HAS_LENGTH 0x80
#define TERM_HAS_DDP    0x40
#define TERM_HAS_RDMAP  0x20

unsigned int rdmap_encode_terminate(uint8_t *buf, const struct rdmap_term *term)
{
	unsigned int len = RDMAP_TERMINATE_CONTROL_LEN;

	buf[0] = (uint8_t)(term->layer << 4 | term->etype);
	buf[1] = term->code;
	buf[2] = 0;
	buf[3] = 0;
	if (!term->header)
		return len;
	buf[2] = TERM_HAS_LENGTH | TERM_HAS_DDP;
	if (term->header_len == DDP_UNTAGGED_LEN + RDMAP_READ_REQUEST_LEN)
		buf[2] |= TERM_HAS_RDMAP;
	put16(buf + len, term->segment_len);
	memcpy(buf + len + 2, term->header, term->header_len);
	return len + 2 + term->header_len;
}

bool rdmap_decode_terminate(const uint8_t *buf, unsigned int len, struct rdmap_term *term)
{
	memset(term, 0, sizeof(*term));
	if (len < RDMAP_TERMINATE_CONTROL_LEN)
		return false;
	term->layer = buf[0] >> 4;
	term->etype = buf[0] & 0xf;
	term->code = buf[1];
	if ((buf[2] & TERM_HAS_DDP) && len >= RDMAP_TERMINATE_CONTROL_LEN + 2 + DDP_TAGGED_LEN) {
		term->segment_len = get16(buf + RDMAP_TERMINATE_CONTROL_LEN);
		term->header = buf + RDMAP_TERMINATE_CONTROL_LEN + 2;
		term->header_len = (uint16_t)(len - RDMAP_TERMINATE_CONTROL_LEN - 2);
	}
	return true;
}

uint32_t crc32c_add(uint32_t crc, const void *buf, size_t len)
{
	while (len) {
		int part = len > 1 << 30 ? 1 << 30 : (int)len;

		crc = crc32_iscsi((unsigned char *)buf, part, crc);
		buf = (const uint8_t *)buf + part;
		len -= (size_t)part;
	}
	return crc;
}

void crc32c_end(uint32_t crc, uint8_t *out)
{
	crc = ~crc;
	out[0] = crc;
	out[1] = crc >> 8;
	out[2] = crc >> 16;
	out[3] = crc >> 24;
}
