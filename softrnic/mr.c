// SPDX-License-Identifier: BSD-3-Clause
/*
 * Protection domains and memory regions.
 *
 * A region's STag (its lkey and rkey) is an index into one table and a random key of 8 bits.  The
 * table is read under a reader lock that is held while the memory is used, so a region that was
 * deregistered is never touched again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "softrnic.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define KEY_BITS      8
#define REMOTE_WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define KNOWN_ACCESS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |     \
	 SRN_ACCESS_FLUSH_GLOBAL | SRN_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_OPTIONAL_RANGE)

static struct {
	pthread_rwlock_t lock;
	struct srn_mr **mrs;
	uint32_t room, next;
} table = {
	/* A reader never locks twice, so a writer need not starve. */
	.lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP,
};

SRN_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	static atomic_uint handles;
	struct srn_pd *pd = calloc(1, sizeof(*pd));

	if (!pd) {
		errno = ENOMEM;
		return NULL;
	}
	pd->pd.context = context;
	pd->pd.handle = atomic_fetch_add(&handles, 1);
	return &pd->pd;
}

SRN_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct srn_pd *spd = (struct srn_pd *)pd;

	if (atomic_load(&spd->users))
		return EBUSY;
	free(spd);
	return 0;
}

/* As pinning would: brings every page in, and fails where there is none. */
static int populate(void *addr, size_t length, bool writable)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)addr & ~(page - 1);
	uintptr_t end = ((uintptr_t)addr + length + page - 1) & ~(page - 1);
	int saved = errno, ret = 0;

	if (madvise((void *)begin, end - begin,
		    writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		/* EINVAL: a kernel before 5.14, or a mapping that cannot be populated. */
		ret = errno == EINVAL ? 0 : errno == ENOMEM ? EFAULT : errno;
	errno = saved;
	return ret;
}

static int check(const void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (!length || (uintptr_t)addr + length < (uintptr_t)addr || iova + length < iova)
		return EINVAL;
	if (access & IBV_ACCESS_MW_BIND || access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if (access & ~(unsigned int)KNOWN_ACCESS)
		return EINVAL;
	if ((access & REMOTE_WRITES) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

/* With the table locked for writing. */
static int insert(struct srn_mr *mr)
{
	uint32_t i, tries;
	uint8_t key;

	if (getrandom(&key, sizeof(key), 0) != sizeof(key))
		key = (uint8_t)((uintptr_t)mr >> 6);
	for (tries = 0; tries < table.room; tries++) {
		i = (table.next + tries) % table.room;
		if (i && !table.mrs[i])
			goto found;
	}
	if (table.room >= SRN_MAX_MR)
		return ENOMEM;
	{
		uint32_t room = table.room ? table.room * 2 : 256;
		struct srn_mr **mrs = calloc(room, sizeof(*mrs)), **old = table.mrs;

		if (!mrs)
			return ENOMEM;
		if (old)
			memcpy(mrs, old, table.room * sizeof(*mrs));
		i = table.room ? table.room : 1; /* STag 0 names nothing */
		/* Should another thread fork now, a child finds the one or the other. */
		table.mrs = mrs;
		table.room = room;
		free(old);
	}
found:
	table.mrs[i] = mr;
	table.next = i + 1;
	mr->mr.handle = i;
	mr->mr.lkey = mr->mr.rkey = i << KEY_BITS | key;
	return 0;
}

SRN_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					   uint64_t iova, unsigned int access)
{
	struct srn_mr *mr;
	int err;

	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	err = check(addr, length, iova, access);
	if (!err)
		err = populate(addr, length, access & IBV_ACCESS_LOCAL_WRITE);
	if (err) {
		errno = err;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr) {
		errno = ENOMEM;
		return NULL;
	}
	mr->mr.context = pd->context;
	mr->mr.pd = pd;
	mr->mr.addr = addr;
	mr->mr.length = length;
	mr->iova = iova;
	mr->access = access;
	pthread_rwlock_wrlock(&table.lock);
	err = insert(mr);
	pthread_rwlock_unlock(&table.lock);
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	atomic_fetch_add(&((struct srn_pd *)pd)->users, 1);
	return &mr->mr;
}

SRN_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

SRN_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
					  uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

SRN_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
			    size_t length, int access)
{
	struct srn_mr *smr = (struct srn_mr *)mr;
	bool move = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	void *new_addr = move ? addr : mr->addr;
	size_t new_length = move ? length : mr->length;
	unsigned int new_access =
		flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned int)access : smr->access;
	int err;

	if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) || !flags ||
	    ((flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != mr->context))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	err = check(new_addr, new_length, (uintptr_t)new_addr, new_access);
	if (!err)
		err = populate(new_addr, new_length, new_access & IBV_ACCESS_LOCAL_WRITE);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	pthread_rwlock_wrlock(&table.lock);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		atomic_fetch_sub(&((struct srn_pd *)mr->pd)->users, 1);
		atomic_fetch_add(&((struct srn_pd *)pd)->users, 1);
		mr->pd = pd;
	}
	if (move) {
		mr->addr = addr;
		mr->length = length;
		smr->iova = (uintptr_t)addr;
	}
	smr->access = new_access;
	pthread_rwlock_unlock(&table.lock);
	return 0;
}

SRN_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	pthread_rwlock_wrlock(&table.lock);
	table.mrs[mr->handle] = NULL;
	pthread_rwlock_unlock(&table.lock);
	atomic_fetch_sub(&((struct srn_pd *)mr->pd)->users, 1);
	free(mr);
	return 0;
}

void srn_mr_lock(void)
{
	pthread_rwlock_rdlock(&table.lock);
}

void srn_mr_unlock(void)
{
	pthread_rwlock_unlock(&table.lock);
}

void srn_mr_after_fork(void)
{
	table.lock = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
}

static struct srn_mr *find(uint32_t stag)
{
	uint32_t i = stag >> KEY_BITS;

	if (i >= table.room || !table.mrs[i] || table.mrs[i]->mr.rkey != stag)
		return NULL;
	return table.mrs[i];
}

void *srn_mr_at(struct ibv_pd *pd, uint32_t stag, uint64_t addr, uint64_t len, unsigned int access,
		uint8_t *why)
{
	struct srn_mr *mr = find(stag);
	uint64_t offset;

	if (!mr) {
		*why = TERM_INVALID_STAG;
		return NULL;
	}
	if (mr->mr.pd != pd) {
		*why = TERM_STREAM;
		return NULL;
	}
	if (addr + len < addr) {
		*why = TERM_TO_WRAP;
		return NULL;
	}
	offset = addr - mr->iova;
	if (addr < mr->iova || offset > mr->mr.length || len > mr->mr.length - offset) {
		*why = TERM_BOUNDS;
		return NULL;
	}
	if ((mr->access & access) != access) {
		*why = TERM_ACCESS;
		return NULL;
	}
	return (char *)mr->mr.addr + offset;
}

bool srn_mr_whole(struct ibv_pd *pd, uint32_t stag, uint64_t *addr, uint64_t *len)
{
	struct srn_mr *mr = find(stag);

	if (!mr || mr->mr.pd != pd)
		return false;
	*addr = mr->iova;
	*len = mr->mr.length;
	return true;
}
