/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions of this side: registration, rights, descriptor, advice */

#include <errno.h>
#include <string.h>

#include "walk.h"

static struct rpma_peer *peer;
static struct rpma_mr_local *mr;

static int reg(int usage)
{
	mr = UNTOUCHED;
	return rpma_mr_reg(peer, region, sizeof(region), usage, &mr);
}

static void rpma_mr_reg__peer_is_NULL__E_INVAL(void **state)
{
	(void)state;
	peer = NULL;
	assert_error(reg(USAGE_ALL), RPMA_E_INVAL);
	assert_untouched(mr);
}

static void rpma_mr_reg__ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	peer = peer_new();
	mr = UNTOUCHED;
	assert_error(rpma_mr_reg(peer, NULL, sizeof(region), USAGE_ALL, &mr), RPMA_E_INVAL);
	assert_untouched(mr);
	peer_delete(peer);
}

static void rpma_mr_reg__size_is_0__E_INVAL(void **state)
{
	(void)state;
	peer = peer_new();
	mr = UNTOUCHED;
	assert_error(rpma_mr_reg(peer, region, 0, USAGE_ALL, &mr), RPMA_E_INVAL);
	assert_untouched(mr);
	peer_delete(peer);
}

static void rpma_mr_reg__mr_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	peer = peer_new();
	assert_error(rpma_mr_reg(peer, region, sizeof(region), USAGE_ALL, NULL), RPMA_E_INVAL);
	peer_delete(peer);
}

static void rpma_mr_reg__usage_is_0__E_INVAL(void **state)
{
	(void)state;
	peer = peer_new();
	assert_error(reg(0), RPMA_E_INVAL);
	assert_untouched(mr);
	peer_delete(peer);
}

static void rpma_mr_reg__usage_has_an_unknown_bit__E_INVAL(void **state)
{
	(void)state;
	peer = peer_new();
	assert_error(reg(USAGE_ALL | 1 << 8), RPMA_E_INVAL);
	assert_untouched(mr);
	peer_delete(peer);
}

static void rpma_mr_reg__no_memory__E_NOMEM(void **state)
{
	(void)state;
	peer = peer_new();
	mock_fail(MOCK_malloc, 1, ENOMEM);
	if (reg(USAGE_ALL) == 0) {
		/* it takes its memory by another call */
		mock_fail_none();
		mr_delete(mr);
		mock_fail(MOCK_calloc, 1, ENOMEM);
		assert_error(reg(USAGE_ALL), RPMA_E_NOMEM);
	}
	assert_untouched(mr);
	peer_delete(peer);
}

static void rpma_mr_reg__the_device_refuses__E_PROVIDER(void **state)
{
	(void)state;
	peer = peer_new();
	mock_fail(MOCK_ibv_reg_mr, 1, EINVAL);
	assert_error(reg(USAGE_ALL), RPMA_E_PROVIDER);
	assert_untouched(mr);
	assert_int_equal(mock_seen()->reg_mr.attempts, 1);
	peer_delete(peer);
}

static int reg_all(void)
{
	return reg(USAGE_ALL);
}

static void with_peer(void)
{
	peer = peer_new();
}

static void without_peer(void)
{
	peer_delete(peer);
}

static void mr_untouched(int answer)
{
	(void)answer;
	assert_untouched(mr);
}

static void dereg(void)
{
	mr_delete(mr);
}

static void rpma_mr_reg__leaks_nothing_whichever_call_fails(void **state)
{
	const struct walk w = {.prepare = with_peer,
			       .act = reg_all,
			       .check = mr_untouched,
			       .undo = dereg,
			       .finish = without_peer,
			       .at_least = 2};

	(void)state;
	walk(&w);
}

/* The rights a region is registered with. */
static int rights_of(int usage)
{
	int access;

	mock_seen()->reg_mr.attempts = 0;
	assert_ok(reg(usage));
	assert_int_equal(mock_seen()->reg_mr.attempts, 1);
	access = mock_seen()->reg_mr.access[0];
	mr_delete(mr);
	return access;
}

enum { REMOTE = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC };

static void rpma_mr_reg__gives_the_peer_no_right_that_was_not_asked_for(void **state)
{
	(void)state;
	peer = peer_new();
	assert_int_equal(rights_of(RPMA_MR_USAGE_READ_SRC) & REMOTE, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(rights_of(RPMA_MR_USAGE_READ_DST) & REMOTE, 0);
	assert_int_equal(rights_of(RPMA_MR_USAGE_WRITE_SRC) & REMOTE, 0);
	assert_int_equal(rights_of(RPMA_MR_USAGE_WRITE_DST) & REMOTE, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(rights_of(RPMA_MR_USAGE_SEND) & REMOTE, 0);
	assert_int_equal(rights_of(RPMA_MR_USAGE_RECV) & REMOTE, 0);
	peer_delete(peer);
}

/* IBTA 10.6.3: remote write needs local write. */
static void rpma_mr_reg__lets_the_device_store_where_data_arrives(void **state)
{
	const int arrives[] = {RPMA_MR_USAGE_READ_DST, RPMA_MR_USAGE_WRITE_DST, RPMA_MR_USAGE_RECV};

	(void)state;
	peer = peer_new();
	for (unsigned i = 0; i < sizeof(arrives) / sizeof(arrives[0]); i++)
		assert_true(rights_of(arrives[i]) & IBV_ACCESS_LOCAL_WRITE);
	assert_false(rights_of(RPMA_MR_USAGE_SEND) & IBV_ACCESS_LOCAL_WRITE);
	assert_false(rights_of(RPMA_MR_USAGE_READ_SRC) & IBV_ACCESS_LOCAL_WRITE);
	peer_delete(peer);
}

/* The flush by read reads from the flushed region. */
static void rpma_mr_reg__a_region_to_flush_can_be_read_by_the_peer(void **state)
{
	(void)state;
	peer = peer_new();
	assert_int_equal(rights_of(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY) & REMOTE,
			 IBV_ACCESS_REMOTE_READ);
	assert_int_equal(rights_of(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) & REMOTE,
			 IBV_ACCESS_REMOTE_READ);
	peer_delete(peer);
}

/* RFC 5040: the sink of a read is named by an STag the peer's response writes to. */
static void rpma_mr_reg__iwarp_lets_the_peer_write_to_the_sink_of_a_read(void **state)
{
	(void)state;
	mock_device()->transport = IBV_TRANSPORT_IWARP;
	peer = peer_new();
	assert_int_equal(rights_of(RPMA_MR_USAGE_READ_DST),
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	peer_delete(peer);
}

static void rpma_mr_reg__registers_the_whole_region(void **state)
{
	(void)state;
	peer = peer_new();
	assert_ok(rpma_mr_reg(peer, region + 8, 24, RPMA_MR_USAGE_SEND, &mr));
	assert_ptr_equal(mock_seen()->reg_mr.addr, region + 8);
	assert_int_equal(mock_seen()->reg_mr.length, 24);
	mr_delete(mr);
	peer_delete(peer);
}

/* fsdax memory cannot be pinned */
static void rpma_mr_reg__tries_on_demand_paging_where_memory_cannot_be_pinned(void **state)
{
	(void)state;
	mock_device()->odp = true;
	mock_device()->reg_mr_errno_without_odp = EOPNOTSUPP;
	peer = peer_new();
	assert_ok(reg(USAGE_ALL));
	assert_int_equal(mock_seen()->reg_mr.attempts, 2);
	assert_false(mock_seen()->reg_mr.access[0] & IBV_ACCESS_ON_DEMAND);
	assert_int_equal(mock_seen()->reg_mr.access[1],
			 mock_seen()->reg_mr.access[0] | IBV_ACCESS_ON_DEMAND);
	mr_delete(mr);
	peer_delete(peer);
}

static void rpma_mr_reg__cannot_be_pinned_nor_paged_on_demand__E_PROVIDER(void **state)
{
	(void)state;
	mock_device()->reg_mr_errno_without_odp = EOPNOTSUPP;
	peer = peer_new();
	assert_error(reg(USAGE_ALL), RPMA_E_PROVIDER);
	assert_untouched(mr);
	assert_int_equal(mock_seen()->reg_mr.attempts, 1);
	peer_delete(peer);
}

static void rpma_mr_reg__another_refusal_is_not_tried_again(void **state)
{
	(void)state;
	mock_device()->odp = true;
	mock_device()->reg_mr_errno_without_odp = EFAULT;
	peer = peer_new();
	assert_error(reg(USAGE_ALL), RPMA_E_PROVIDER);
	assert_int_equal(mock_seen()->reg_mr.attempts, 1);
	peer_delete(peer);
}

static void rpma_mr_dereg__mr_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_mr_dereg(NULL), RPMA_E_INVAL);
}

static void rpma_mr_dereg__twice_is_harmless(void **state)
{
	(void)state;
	peer = peer_new();
	mr = mr_new(peer, USAGE_ALL);
	assert_ok(rpma_mr_dereg(&mr));
	assert_null(mr);
	assert_ok(rpma_mr_dereg(&mr));
	assert_null(mr);
	peer_delete(peer);
}

static void rpma_mr_dereg__the_device_refuses__E_PROVIDER(void **state)
{
	struct rpma_mr_local *before;
	void *ptr = NULL;

	(void)state;
	peer = peer_new();
	mr = before = mr_new(peer, USAGE_ALL);
	mock_fail(MOCK_ibv_dereg_mr, 1, EBUSY);
	assert_error(rpma_mr_dereg(&mr), RPMA_E_PROVIDER);
	/* the region is as it was, and can be given up later */
	assert_ptr_equal(mr, before);
	assert_ok(rpma_mr_get_ptr(mr, &ptr));
	assert_ptr_equal(ptr, region);
	mr_delete(mr);
	peer_delete(peer);
}

static void with_mr(void)
{
	peer = peer_new();
	mr = mr_new(peer, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_DST);
}

static void without_mr(void)
{
	mr_delete(mr);
	peer_delete(peer);
}

static void rpma_mr_get_ptr__mr_is_NULL__E_INVAL(void **state)
{
	void *ptr = UNTOUCHED;

	(void)state;
	assert_error(rpma_mr_get_ptr(NULL, &ptr), RPMA_E_INVAL);
	assert_untouched(ptr);
}

static void rpma_mr_get_ptr__ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_mr();
	assert_error(rpma_mr_get_ptr(mr, NULL), RPMA_E_INVAL);
	without_mr();
}

static void rpma_mr_get_ptr__gives_what_was_registered(void **state)
{
	void *ptr = UNTOUCHED;

	(void)state;
	with_mr();
	assert_ok(rpma_mr_get_ptr(mr, &ptr));
	assert_ptr_equal(ptr, region);
	without_mr();
}

static void rpma_mr_get_size__mr_is_NULL__E_INVAL(void **state)
{
	size_t size = 77;

	(void)state;
	assert_error(rpma_mr_get_size(NULL, &size), RPMA_E_INVAL);
	assert_int_equal(size, 77);
}

static void rpma_mr_get_size__size_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_mr();
	assert_error(rpma_mr_get_size(mr, NULL), RPMA_E_INVAL);
	without_mr();
}

static void rpma_mr_get_size__gives_what_was_registered(void **state)
{
	size_t size = 77;

	(void)state;
	with_mr();
	assert_ok(rpma_mr_get_size(mr, &size));
	assert_int_equal(size, sizeof(region));
	without_mr();
}

static void rpma_mr_get_descriptor__mr_is_NULL__E_INVAL(void **state)
{
	uint8_t desc[21] = {0x5a};

	(void)state;
	assert_error(rpma_mr_get_descriptor(NULL, desc), RPMA_E_INVAL);
	assert_int_equal(desc[0], 0x5a);
}

static void rpma_mr_get_descriptor__desc_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_mr();
	assert_error(rpma_mr_get_descriptor(mr, NULL), RPMA_E_INVAL);
	without_mr();
}

static void rpma_mr_get_descriptor__is_21_bytes_little_endian(void **state)
{
	uint8_t desc[22], wanted[22];

	(void)state;
	with_mr();
	memset(desc, 0x5a, sizeof(desc));
	memset(wanted, 0x5a, sizeof(wanted));
	descriptor(wanted, (uintptr_t)region, sizeof(region), MOCK_RKEY,
		   RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_DST);
	assert_ok(rpma_mr_get_descriptor(mr, desc));
	assert_memory_equal(desc, wanted, sizeof(desc));
	without_mr();
}

static void rpma_mr_get_descriptor_size__mr_is_NULL__E_INVAL(void **state)
{
	size_t size = 77;

	(void)state;
	assert_error(rpma_mr_get_descriptor_size(NULL, &size), RPMA_E_INVAL);
	assert_int_equal(size, 77);
}

static void rpma_mr_get_descriptor_size__desc_size_is_NULL__E_INVAL(void **state)
{
	(void)state;
	with_mr();
	assert_error(rpma_mr_get_descriptor_size(mr, NULL), RPMA_E_INVAL);
	without_mr();
}

static void rpma_mr_get_descriptor_size__is_21(void **state)
{
	size_t size = 77;

	(void)state;
	with_mr();
	assert_ok(rpma_mr_get_descriptor_size(mr, &size));
	assert_int_equal(size, 21);
	without_mr();
}

static int advise(size_t offset, size_t len)
{
	return rpma_mr_advise(mr, offset, len, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			      IBV_ADVISE_MR_FLAG_FLUSH);
}

static void rpma_mr_advise__mr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	mr = NULL;
	assert_error(advise(0, 8), RPMA_E_INVAL);
}

static void rpma_mr_advise__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	with_mr();
	assert_error(advise(0, REGION + 1), RPMA_E_INVAL);
	assert_error(advise(REGION, 1), RPMA_E_INVAL);
	assert_error(advise(REGION - 8, 9), RPMA_E_INVAL);
	assert_error(advise(SIZE_MAX, 8), RPMA_E_INVAL);
	assert_error(advise(8, SIZE_MAX - 7), RPMA_E_INVAL);
	assert_int_equal(mock_calls(MOCK_ibv_advise_mr), 0);
	without_mr();
}

static void rpma_mr_advise__the_device_finds_it_wrong__E_INVAL(void **state)
{
	const int wrong[] = {EFAULT, EINVAL};

	(void)state;
	with_mr();
	for (unsigned i = 0; i < 2; i++) {
		mock_device()->advise_errno = wrong[i];
		assert_error(advise(0, 8), RPMA_E_INVAL);
	}
	without_mr();
}

static void rpma_mr_advise__the_device_has_it_not__E_NOSUPP(void **state)
{
	const int missing[] = {EOPNOTSUPP, ENOTSUP};

	(void)state;
	with_mr();
	for (unsigned i = 0; i < 2; i++) {
		mock_device()->advise_errno = missing[i];
		assert_error(advise(0, 8), RPMA_E_NOSUPP);
	}
	without_mr();
}

static void rpma_mr_advise__a_device_without_extended_verbs__E_NOSUPP(void **state)
{
	(void)state;
	mock_device()->legacy = true;
	with_mr();
	assert_error(advise(0, 8), RPMA_E_NOSUPP);
	without_mr();
}

static void rpma_mr_advise__another_failure__E_PROVIDER(void **state)
{
	(void)state;
	with_mr();
	mock_device()->advise_errno = ENOMEM;
	assert_error(advise(0, 8), RPMA_E_PROVIDER);
	without_mr();
}

static void rpma_mr_advise__names_the_range_by_address_and_lkey(void **state)
{
	const struct ibv_sge *sge = &mock_seen()->advise.sge;

	(void)state;
	with_mr();
	assert_ok(advise(16, REGION - 16));
	assert_int_equal(mock_seen()->advise.advice, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
	assert_int_equal(mock_seen()->advise.flags, IBV_ADVISE_MR_FLAG_FLUSH);
	assert_int_equal(sge->addr, (uintptr_t)region + 16);
	assert_int_equal(sge->length, REGION - 16);
	assert_int_equal(sge->lkey, MOCK_LKEY);
	without_mr();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_mr_reg__peer_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_reg__ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_reg__size_is_0__E_INVAL),
		RPMA_TEST(rpma_mr_reg__mr_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_reg__usage_is_0__E_INVAL),
		RPMA_TEST(rpma_mr_reg__usage_has_an_unknown_bit__E_INVAL),
		RPMA_TEST(rpma_mr_reg__no_memory__E_NOMEM),
		RPMA_TEST(rpma_mr_reg__the_device_refuses__E_PROVIDER),
		RPMA_TEST(rpma_mr_reg__leaks_nothing_whichever_call_fails),
		RPMA_TEST(rpma_mr_reg__gives_the_peer_no_right_that_was_not_asked_for),
		RPMA_TEST(rpma_mr_reg__lets_the_device_store_where_data_arrives),
		RPMA_TEST(rpma_mr_reg__a_region_to_flush_can_be_read_by_the_peer),
		RPMA_TEST(rpma_mr_reg__iwarp_lets_the_peer_write_to_the_sink_of_a_read),
		RPMA_TEST(rpma_mr_reg__registers_the_whole_region),
		RPMA_TEST(rpma_mr_reg__tries_on_demand_paging_where_memory_cannot_be_pinned),
		RPMA_TEST(rpma_mr_reg__cannot_be_pinned_nor_paged_on_demand__E_PROVIDER),
		RPMA_TEST(rpma_mr_reg__another_refusal_is_not_tried_again),
		RPMA_TEST(rpma_mr_dereg__mr_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_dereg__twice_is_harmless),
		RPMA_TEST(rpma_mr_dereg__the_device_refuses__E_PROVIDER),
		RPMA_TEST(rpma_mr_get_ptr__mr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_get_ptr__ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_get_ptr__gives_what_was_registered),
		RPMA_TEST(rpma_mr_get_size__mr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_get_size__size_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_get_size__gives_what_was_registered),
		RPMA_TEST(rpma_mr_get_descriptor__mr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_get_descriptor__desc_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_get_descriptor__is_21_bytes_little_endian),
		RPMA_TEST(rpma_mr_get_descriptor_size__mr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_get_descriptor_size__desc_size_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_get_descriptor_size__is_21),
		RPMA_TEST(rpma_mr_advise__mr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_mr_advise__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_mr_advise__the_device_finds_it_wrong__E_INVAL),
		RPMA_TEST(rpma_mr_advise__the_device_has_it_not__E_NOSUPP),
		RPMA_TEST(rpma_mr_advise__a_device_without_extended_verbs__E_NOSUPP),
		RPMA_TEST(rpma_mr_advise__another_failure__E_PROVIDER),
		RPMA_TEST(rpma_mr_advise__names_the_range_by_address_and_lkey),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
