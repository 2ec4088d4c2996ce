/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The iWARP wire: byte layouts of MPA (RFC 5044, 6581), DDP (RFC 5041), RDMAP (RFC 5040) and its
 * extensions (RFC 7306).  Pure functions over byte buffers; everything is big-endian on the wire.
 */
#ifndef SOFTRNIC_WIRE_H
#define SOFTRNIC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MPA start-up frames: RFC 5044 section 7.1, enhanced by RFC 6581. */
#define MPA_KEY_LEN       16
#define MPA_HDR_LEN       20
#define MPA_PRIV_MAX      512
#define MPA_ENHANCED_LEN  4
#define MPA_FLAG_MARKERS  0x80
#define MPA_FLAG_CRC      0x40
#define MPA_FLAG_REJECT   0x20
#define MPA_FLAG_ENHANCED 0x10
/*
 * Extension: a bit RFC 5044 reserves (sent as zero, not checked on reception) says that the
 * sender knows the messages below that no RFC has.  They are used only if both sides set it.
 */
#define MPA_FLAG_EXTENDED 0x01

/* Control bits in the IRD and ORD words of RFC 6581. */
#define MPA_IRD_PEER_TO_PEER 0x8000
#define MPA_IRD_RTR_SEND     0x4000
#define MPA_ORD_RTR_WRITE    0x8000
#define MPA_ORD_RTR_READ     0x4000
#define MPA_DEPTH_MASK       0x3fff

struct mpa_frame {
	bool reply;
	uint8_t flags;
	uint8_t revision;
	uint16_t priv_len; /* everything behind the header, the enhanced words too */
};

struct mpa_enhanced {
	uint16_t ird; /* with MPA_IRD_ bits */
	uint16_t ord; /* with MPA_ORD_ bits */
};

void mpa_encode(uint8_t *buf, const struct mpa_frame *frame);
/* Returns false if the key is not the one expected. */
bool mpa_decode(const uint8_t *buf, bool reply, struct mpa_frame *frame);
void mpa_encode_enhanced(uint8_t *buf, const struct mpa_enhanced *enhanced);
void mpa_decode_enhanced(const uint8_t *buf, struct mpa_enhanced *enhanced);

/* FPDU: RFC 5044 section 4.  A length of the ULPDU, the ULPDU, pad to 4, CRC32C. */
#define FPDU_LEN_SIZE  2
#define FPDU_CRC_SIZE  4
#define FPDU_ULPDU_MAX 65535

static inline unsigned int fpdu_pad(unsigned int ulpdu_len)
{
	return -(FPDU_LEN_SIZE + ulpdu_len) & 3;
}

/* DDP control: RFC 5041 section 4; RDMAP control: RFC 5040 section 4.1. */
#define DDP_TAGGED         0x80
#define DDP_LAST           0x40
#define DDP_RESERVED       0x3c
#define DDP_VERSION_MASK   0x03
#define DDP_VERSION        0x01
#define DDP_TAGGED_LEN     14
#define DDP_UNTAGGED_LEN   18
#define RDMAP_VERSION      0x40
#define RDMAP_VERSION_MASK 0xc0
#define RDMAP_OPCODE_MASK  0x0f

enum ddp_queue {
	DDP_QUEUE_SEND = 0,
	DDP_QUEUE_READ = 1,
	DDP_QUEUE_TERMINATE = 2,
	DDP_QUEUE_RESPONSE = 3, /* RFC 7306 section 5.2.2 */
	DDP_QUEUES
};

enum rdmap_opcode {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQUEST = 1,
	RDMAP_READ_RESPONSE = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INV = 4,
	RDMAP_SEND_SE = 5,
	RDMAP_SEND_SE_INV = 6,
	RDMAP_TERMINATE = 7,
	RDMAP_IMMEDIATE = 8,
	RDMAP_IMMEDIATE_SE = 9,
	RDMAP_ATOMIC_REQUEST = 10,
	RDMAP_ATOMIC_RESPONSE = 11,
	/* Extensions, see MPA_FLAG_EXTENDED. */
	RDMAP_FLUSH_REQUEST = 12,
	RDMAP_FLUSH_RESPONSE = 13,
	RDMAP_SEND_IMM = 14,
	RDMAP_SEND_IMM_SE = 15,
};

struct ddp_header {
	bool tagged;
	bool last;
	uint8_t ddp_control;
	uint8_t rdmap_control;
	uint8_t opcode;
	uint32_t stag; /* tagged: STag; untagged: the four bytes RDMAP may use */
	uint64_t to;   /* tagged only */
	uint32_t queue, msn, mo;
};

/* Writes header->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN bytes and returns how many. */
unsigned int ddp_encode(uint8_t *buf, const struct ddp_header *header);
void ddp_decode(const uint8_t *buf, struct ddp_header *header);

/* Payload of a read request: RFC 5040 section 4.4. */
#define RDMAP_READ_REQUEST_LEN 28
struct rdmap_read_request {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t size;
	uint32_t source_stag;
	uint64_t source_to;
};
void rdmap_encode_read_request(uint8_t *buf, const struct rdmap_read_request *request);
void rdmap_decode_read_request(const uint8_t *buf, struct rdmap_read_request *request);

/* Payload of atomic messages: RFC 7306 section 5.2. */
#define RDMAP_ATOMIC_REQUEST_LEN  52
#define RDMAP_ATOMIC_RESPONSE_LEN 12
#define RDMAP_IMMEDIATE_LEN       8
enum rdmap_atomic_opcode {
	RDMAP_FETCH_ADD = 0,
	RDMAP_CMP_SWAP = 2,
	RDMAP_ATOMIC_WRITE = 8, /* extension: stores the data, needs the right to write only */
};
struct rdmap_atomic_request {
	uint32_t opcode;
	uint32_t id;
	uint32_t stag;
	uint64_t to;
	uint64_t data, mask;
	uint64_t compare, compare_mask;
};
void rdmap_encode_atomic_request(uint8_t *buf, const struct rdmap_atomic_request *request);
void rdmap_decode_atomic_request(const uint8_t *buf, struct rdmap_atomic_request *request);
void rdmap_encode_atomic_response(uint8_t *buf, uint32_t id, uint64_t original);
void rdmap_decode_atomic_response(const uint8_t *buf, uint32_t *id, uint64_t *original);

/* Extension: a flush request names a range, its placement type and the selectivity level. */
#define RDMAP_FLUSH_REQUEST_LEN  28
#define RDMAP_FLUSH_RESPONSE_LEN 4
struct rdmap_flush_request {
	uint32_t id;
	uint32_t stag;
	uint64_t to;
	uint64_t size;
	uint8_t type;
	uint8_t level;
};
void rdmap_encode_flush_request(uint8_t *buf, const struct rdmap_flush_request *request);
void rdmap_decode_flush_request(const uint8_t *buf, struct rdmap_flush_request *request);

/* Terminate: RFC 5040 section 4.8.  The terminated headers follow the control word. */
#define RDMAP_TERMINATE_CONTROL_LEN 4
#define RDMAP_TERMINATE_MAX         (RDMAP_TERMINATE_CONTROL_LEN + 2 + DDP_UNTAGGED_LEN + 28)
enum term_layer { TERM_RDMAP = 0, TERM_DDP = 1, TERM_LLP = 2 };
enum term_rdmap_etype { TERM_RDMAP_LOCAL = 0, TERM_RDMAP_PROTECTION = 1, TERM_RDMAP_OPERATION = 2 };
enum term_ddp_etype { TERM_DDP_LOCAL = 0, TERM_DDP_TAGGED = 1, TERM_DDP_UNTAGGED = 2 };
enum term_rdmap_code {
	TERM_INVALID_STAG = 0x00,
	TERM_BOUNDS = 0x01,
	TERM_ACCESS = 0x02,
	TERM_STREAM = 0x03,
	TERM_TO_WRAP = 0x04,
	TERM_RDMAP_BAD_VERSION = 0x05,
	TERM_BAD_OPCODE = 0x06,
	TERM_CATASTROPHIC = 0x07,
	TERM_NOT_INVALIDATED = 0x09,
	TERM_UNSPECIFIED = 0xff,
};
enum term_ddp_code {
	TERM_TAGGED_STAG = 0x00,
	TERM_TAGGED_BOUNDS = 0x01,
	TERM_TAGGED_STREAM = 0x02,
	TERM_TAGGED_WRAP = 0x03,
	TERM_TAGGED_VERSION = 0x04,
	TERM_UNTAGGED_QUEUE = 0x01,
	TERM_UNTAGGED_NO_BUFFER = 0x02,
	TERM_UNTAGGED_MSN = 0x03,
	TERM_UNTAGGED_MO = 0x04,
	TERM_UNTAGGED_TOO_LONG = 0x05,
	TERM_UNTAGGED_VERSION = 0x06,
};
enum term_llp_code { TERM_LLP_CRC = 0x02, TERM_LLP_LENGTH = 0x03, TERM_LLP_IRD = 0x06 };

struct rdmap_term {
	uint8_t layer, etype, code;
	const uint8_t *header; /* the terminated ULPDU's headers, NULL if there is none */
	uint16_t header_len;
	uint16_t segment_len; /* ULPDU length of the terminated segment */
};
unsigned int rdmap_encode_terminate(uint8_t *buf, const struct rdmap_term *term);
/* Returns false if the bytes are too few. */
bool rdmap_decode_terminate(const uint8_t *buf, unsigned int len, struct rdmap_term *term);

static inline void put16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static inline void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

static inline void put64(uint8_t *p, uint64_t v)
{
	put32(p, v >> 32);
	put32(p + 4, v);
}

static inline uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static inline uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

/* CRC32C over len bytes, chained: start with crc32c_begin(), end with crc32c_end(). */
uint32_t crc32c_add(uint32_t crc, const void *buf, size_t len);
static inline uint32_t crc32c_begin(void)
{
	return 0xffffffff;
}
/* Writes the four bytes as they go on the wire (RFC 5044 section 4.4, RFC 3385's bit order). */
void crc32c_end(uint32_t crc, uint8_t *out);

#endif
