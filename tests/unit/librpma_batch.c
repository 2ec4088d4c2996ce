/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches: making one, and appending to it */

#include <string.h>

#include "batch.h"

static void rpma_batch_new__conn_is_NULL__E_INVAL(void **state)
{
	(void)state;
	batch = UNTOUCHED;
	assert_error(rpma_batch_new(NULL, 1, &batch), RPMA_E_INVAL);
	assert_untouched(batch);
}

static void rpma_batch_new__batch_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	assert_error(rpma_batch_new(l.conn, 1, NULL), RPMA_E_INVAL);
	link_down(&l);
}

static void rpma_batch_new__capacity_is_0__E_INVAL(void **state)
{
	(void)state;
	link_up(&l);
	batch = UNTOUCHED;
	assert_error(rpma_batch_new(l.conn, 0, &batch), RPMA_E_INVAL);
	assert_untouched(batch);
	link_down(&l);
}

static void rpma_batch_new__more_than_the_send_queue_holds__E_INVAL(void **state)
{
	struct rpma_limits limits;

	(void)state;
	mock_device()->qp_extra.max_send_wr = 6;
	link_up(&l);
	assert_ok(rpma_conn_get_limits(l.conn, &limits));
	assert_int_equal(limits.sq_size, 16);
	batch = UNTOUCHED;
	assert_error(rpma_batch_new(l.conn, 17, &batch), RPMA_E_INVAL);
	assert_error(rpma_batch_new(l.conn, UINT32_MAX, &batch), RPMA_E_INVAL);
	assert_untouched(batch);
	assert_ok(rpma_batch_new(l.conn, 16, &batch));
	down();
}

static void rpma_batch_new__no_memory__E_NOMEM(void **state)
{
	(void)state;
	link_up(&l);
	batch = UNTOUCHED;
	mock_fail_any(1, false);
	assert_error(rpma_batch_new(l.conn, CAPACITY, &batch), RPMA_E_NOMEM);
	assert_untouched(batch);
	link_down(&l);
}

static void rpma_batch_delete__batch_ptr_is_NULL__E_INVAL(void **state)
{
	(void)state;
	assert_error(rpma_batch_delete(NULL), RPMA_E_INVAL);
}

static void rpma_batch_delete__twice_is_harmless(void **state)
{
	(void)state;
	up();
	assert_ok(rpma_batch_delete(&batch));
	assert_null(batch);
	down();
}

static void rpma_batch_delete__drops_what_waits(void **state)
{
	(void)state;
	up();
	assert_ok(add(0, ALWAYS));
	assert_ok(rpma_batch_delete(&batch));
	assert_int_equal(mock_seen()->wr_count, 0);
	down();
}

static void batch_is_NULL(unsigned which)
{
	up();
	assert_error(one_of_each(NULL, l.remote, l.local, 0, ALWAYS, which), RPMA_E_INVAL);
	down();
}

static void flags_are_0(unsigned which)
{
	up();
	assert_error(one_of_each(batch, l.remote, l.local, 0, 0, which), RPMA_E_INVAL);
	assert_int_equal(waiting(), 0);
	down();
}

static void no_region(unsigned which)
{
	up();
	assert_error(one_of_each(batch, NULL, NULL, 0, ALWAYS, which), RPMA_E_INVAL);
	assert_int_equal(waiting(), 0);
	down();
}

static void beyond_the_region(unsigned which)
{
	up();
	assert_error(one_of_each(batch, l.remote, l.local, REGION, ALWAYS, which), RPMA_E_INVAL);
	assert_error(one_of_each(batch, l.remote, l.local, SIZE_MAX - 7, ALWAYS, which),
		     RPMA_E_INVAL);
	assert_int_equal(waiting(), 0);
	down();
}

static void the_batch_is_full(unsigned which)
{
	up();
	for (unsigned i = 0; i < CAPACITY; i++)
		assert_ok(add(i, ON_ERROR));
	assert_error(one_of_each(batch, l.remote, l.local, 0, ALWAYS, which), RPMA_E_AGAIN);
	assert_int_equal(waiting(), CAPACITY);
	assert_ok(rpma_batch_submit(batch, 0, NULL));
	assert_int_equal(mock_seen()->wr_count, CAPACITY);
	for (unsigned i = 0; i < CAPACITY; i++)
		assert_posted(&mock_seen()->wr[i], i, 0);
	assert_ok(one_of_each(batch, l.remote, l.local, 0, ALWAYS, which));
	down();
}

static void rpma_batch_read__batch_is_NULL__E_INVAL(void **state)
{
	(void)state;
	batch_is_NULL(READ);
}

static void rpma_batch_read__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(READ);
}

static void rpma_batch_read__no_region__E_INVAL(void **state)
{
	(void)state;
	no_region(READ);
}

static void rpma_batch_read__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_region(READ);
}

static void rpma_batch_read__the_batch_is_full__E_AGAIN(void **state)
{
	(void)state;
	the_batch_is_full(READ);
}

static void rpma_batch_write__batch_is_NULL__E_INVAL(void **state)
{
	(void)state;
	batch_is_NULL(WRITE);
}

static void rpma_batch_write__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(WRITE);
}

static void rpma_batch_write__no_region__E_INVAL(void **state)
{
	(void)state;
	no_region(WRITE);
}

static void rpma_batch_write__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_region(WRITE);
}

static void rpma_batch_write__the_batch_is_full__E_AGAIN(void **state)
{
	(void)state;
	the_batch_is_full(WRITE);
}

static void rpma_batch_write_with_imm__batch_is_NULL__E_INVAL(void **state)
{
	(void)state;
	batch_is_NULL(WRITE_WITH_IMM);
}

static void rpma_batch_write_with_imm__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(WRITE_WITH_IMM);
}

static void rpma_batch_write_with_imm__no_region__E_INVAL(void **state)
{
	(void)state;
	no_region(WRITE_WITH_IMM);
}

static void rpma_batch_write_with_imm__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_region(WRITE_WITH_IMM);
}

static void rpma_batch_write_with_imm__the_batch_is_full__E_AGAIN(void **state)
{
	(void)state;
	the_batch_is_full(WRITE_WITH_IMM);
}

static void rpma_batch_send__batch_is_NULL__E_INVAL(void **state)
{
	(void)state;
	batch_is_NULL(SEND);
}

static void rpma_batch_send__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(SEND);
}

static void rpma_batch_send__no_region__E_INVAL(void **state)
{
	(void)state;
	no_region(SEND);
}

static void rpma_batch_send__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_region(SEND);
}

static void rpma_batch_send__the_batch_is_full__E_AGAIN(void **state)
{
	(void)state;
	the_batch_is_full(SEND);
}

static void rpma_batch_send_with_imm__batch_is_NULL__E_INVAL(void **state)
{
	(void)state;
	batch_is_NULL(SEND_WITH_IMM);
}

static void rpma_batch_send_with_imm__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(SEND_WITH_IMM);
}

static void rpma_batch_send_with_imm__no_region__E_INVAL(void **state)
{
	(void)state;
	no_region(SEND_WITH_IMM);
}

static void rpma_batch_send_with_imm__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_region(SEND_WITH_IMM);
}

static void rpma_batch_send_with_imm__the_batch_is_full__E_AGAIN(void **state)
{
	(void)state;
	the_batch_is_full(SEND_WITH_IMM);
}

static void rpma_batch_flush__batch_is_NULL__E_INVAL(void **state)
{
	(void)state;
	batch_is_NULL(FLUSH);
}

static void rpma_batch_flush__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(FLUSH);
}

static void rpma_batch_flush__no_region__E_INVAL(void **state)
{
	(void)state;
	no_region(FLUSH);
}

static void rpma_batch_flush__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_region(FLUSH);
}

static void rpma_batch_flush__the_batch_is_full__E_AGAIN(void **state)
{
	(void)state;
	the_batch_is_full(FLUSH);
}

static void rpma_batch_atomic_write__batch_is_NULL__E_INVAL(void **state)
{
	(void)state;
	batch_is_NULL(ATOMIC_WRITE);
}

static void rpma_batch_atomic_write__flags_are_0__E_INVAL(void **state)
{
	(void)state;
	flags_are_0(ATOMIC_WRITE);
}

static void rpma_batch_atomic_write__no_region__E_INVAL(void **state)
{
	(void)state;
	no_region(ATOMIC_WRITE);
}

static void rpma_batch_atomic_write__beyond_the_region__E_INVAL(void **state)
{
	(void)state;
	beyond_the_region(ATOMIC_WRITE);
}

static void rpma_batch_atomic_write__the_batch_is_full__E_AGAIN(void **state)
{
	(void)state;
	the_batch_is_full(ATOMIC_WRITE);
}

static void rpma_batch_flush__persistent_without_direct_write__E_NOSUPP(void **state)
{
	(void)state;
	link_up(&l);
	assert_ok(rpma_batch_new(l.conn, CAPACITY, &batch));
	assert_error(one_of_each(batch, l.remote, l.local, 0, ALWAYS, FLUSH), RPMA_E_NOSUPP);
	assert_int_equal(waiting(), 0);
	down();
}

static void rpma_batch_flush__unknown_type__E_INVAL(void **state)
{
	(void)state;
	up();
	assert_error(rpma_batch_flush(batch, l.remote, 0, 8, (enum rpma_flush_type)2, ALWAYS, NULL),
		     RPMA_E_INVAL);
	assert_int_equal(waiting(), 0);
	down();
}

static void rpma_batch_atomic_write__not_aligned__E_INVAL(void **state)
{
	(void)state;
	up();
	assert_error(rpma_batch_atomic_write(batch, l.remote, 4, "8 bytes", ALWAYS, NULL),
		     RPMA_E_INVAL);
	assert_int_equal(waiting(), 0);
	down();
}

static void rpma_batch_atomic_write__src_is_NULL__E_INVAL(void **state)
{
	/* through a variable: the compiler would know what the header says of src */
	const char *volatile none = NULL;

	(void)state;
	up();
	assert_error(rpma_batch_atomic_write(batch, l.remote, 0, none, ALWAYS, NULL), RPMA_E_INVAL);
	assert_int_equal(waiting(), 0);
	down();
}

static void rpma_batch_atomic_write__copies_src(void **state)
{
	char src[8] = "8 bytes";

	(void)state;
	up();
	assert_ok(rpma_batch_atomic_write(batch, l.remote, 8, src, ALWAYS, context(0)));
	memset(src, 0, sizeof(src));
	assert_ok(rpma_batch_submit(batch, 0, NULL));
	assert_memory_equal(the_wr()->inlined, "8 bytes", 8);
	assert_int_equal(the_wr()->remote_addr, REMOTE_ADDR + 8);
	assert_true(the_wr()->send_flags & IBV_SEND_INLINE);
	assert_true(the_wr()->send_flags & IBV_SEND_FENCE);
	down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPMA_TEST(rpma_batch_new__conn_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_new__batch_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_new__capacity_is_0__E_INVAL),
		RPMA_TEST(rpma_batch_new__more_than_the_send_queue_holds__E_INVAL),
		RPMA_TEST(rpma_batch_new__no_memory__E_NOMEM),
		RPMA_TEST(rpma_batch_delete__batch_ptr_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_delete__twice_is_harmless),
		RPMA_TEST(rpma_batch_delete__drops_what_waits),
		RPMA_TEST(rpma_batch_read__batch_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_read__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_batch_read__no_region__E_INVAL),
		RPMA_TEST(rpma_batch_read__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_batch_read__the_batch_is_full__E_AGAIN),
		RPMA_TEST(rpma_batch_write__batch_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_write__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_batch_write__no_region__E_INVAL),
		RPMA_TEST(rpma_batch_write__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_batch_write__the_batch_is_full__E_AGAIN),
		RPMA_TEST(rpma_batch_write_with_imm__batch_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_write_with_imm__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_batch_write_with_imm__no_region__E_INVAL),
		RPMA_TEST(rpma_batch_write_with_imm__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_batch_write_with_imm__the_batch_is_full__E_AGAIN),
		RPMA_TEST(rpma_batch_send__batch_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_send__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_batch_send__no_region__E_INVAL),
		RPMA_TEST(rpma_batch_send__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_batch_send__the_batch_is_full__E_AGAIN),
		RPMA_TEST(rpma_batch_send_with_imm__batch_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_send_with_imm__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_batch_send_with_imm__no_region__E_INVAL),
		RPMA_TEST(rpma_batch_send_with_imm__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_batch_send_with_imm__the_batch_is_full__E_AGAIN),
		RPMA_TEST(rpma_batch_flush__batch_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_flush__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_batch_flush__no_region__E_INVAL),
		RPMA_TEST(rpma_batch_flush__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_batch_flush__the_batch_is_full__E_AGAIN),
		RPMA_TEST(rpma_batch_atomic_write__batch_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_atomic_write__flags_are_0__E_INVAL),
		RPMA_TEST(rpma_batch_atomic_write__no_region__E_INVAL),
		RPMA_TEST(rpma_batch_atomic_write__beyond_the_region__E_INVAL),
		RPMA_TEST(rpma_batch_atomic_write__the_batch_is_full__E_AGAIN),
		RPMA_TEST(rpma_batch_flush__persistent_without_direct_write__E_NOSUPP),
		RPMA_TEST(rpma_batch_flush__unknown_type__E_INVAL),
		RPMA_TEST(rpma_batch_atomic_write__not_aligned__E_INVAL),
		RPMA_TEST(rpma_batch_atomic_write__src_is_NULL__E_INVAL),
		RPMA_TEST(rpma_batch_atomic_write__copies_src),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
