import { megabytes } from "../../../src/render/words.ts"
import { recordAudit } from "./audit.ts"
import type { Database, Query, Viewer } from "./connection.ts"
import { HubProblem } from "./problem.ts"
import { TENANT, TENANT_SCOPE } from "./scope.ts"

/**
 * How much is stored, and how much may be stored. The uncompressed size of chunks counts, because text costs as much to search
 * however well it is compressed. A revision counts once it is committed.
 */
export type StoredBytes = { bytes: number; quota_bytes: number }
export type ViewerStorage = { yours?: StoredBytes; team?: StoredBytes }
export type Quotas = {
  /** Empty if no quota is set. The numbers are up to a minute old. */
  storedFor(viewer: Viewer): Promise<ViewerStorage>
  /** Throws a HubProblem (507) if the member or the team may store no more. */
  checkRoom(viewer: Viewer): Promise<void>
}

type StorageUsage = {
  readAt: number
  teamQuota: number | null
  quotaByMember: Map<number, number>
  bytesByMember: Map<number, number>
}

const MAX_AGE_MS = 60_000

const SELECT_TEAM_QUOTA = `select (settings ->> 'quota_bytes')::bigint as quota from hub.tenant where id = ${TENANT}`
const SELECT_MEMBER_QUOTAS = `select id, quota_bytes as quota from hub.member where tenant = ${TENANT} and quota_bytes is not null`
const SELECT_STORED_BYTES = `select author, coalesce(sum(stored_bytes), 0)::bigint as bytes from hub.conversation where ${TENANT_SCOPE} group by author`

/** Adds up a tenant's sizes at most once a minute: a quota need not be exact, and doing this for every plan would be slow. */
export function createQuotas(db: Database, now: () => number = Date.now): Quotas {
  const usages = new Map<number, Promise<StorageUsage>>()
  const usageOf = async (tenant: number): Promise<StorageUsage> => {
    const cached = await usages.get(tenant)?.catch(() => undefined)
    if (cached && now() - cached.readAt < MAX_AGE_MS) return cached
    const usage = db.asIndex(tenant, async (query) => ({ readAt: now(), ...(await readUsage(query)) }))
    usages.set(tenant, usage)
    return usage
  }
  const storedFor = async ({ tenant, member }: Viewer): Promise<ViewerStorage> => {
    const { teamQuota, quotaByMember, bytesByMember } = await usageOf(tenant)
    const quota = quotaByMember.get(member)
    const teamBytes = [...bytesByMember.values()].reduce((sum, one) => sum + one, 0)
    return {
      yours: quota === undefined ? undefined : { bytes: bytesByMember.get(member) ?? 0, quota_bytes: quota },
      team: teamQuota === null ? undefined : { bytes: teamBytes, quota_bytes: teamQuota },
    }
  }
  return {
    storedFor,
    checkRoom: async (viewer) => {
      const { yours, team } = await storedFor(viewer)
      if (yours && yours.bytes >= yours.quota_bytes)
        throw quotaProblem(
          `Your shared conversations take ${sizeOf(yours)}`,
          "stop sharing a project with `dex hub unshare --forget`",
        )
      if (team && team.bytes >= team.quota_bytes)
        throw quotaProblem(
          `Your team's shared conversations take ${sizeOf(team)}`,
          "delete conversations that are no longer needed",
        )
    },
  }
}

async function readUsage(query: Query): Promise<Omit<StorageUsage, "readAt">> {
  const [tenant] = await query<{ quota: number | null }>(SELECT_TEAM_QUOTA)
  const teamQuota = tenant?.quota ?? null
  const quotas = await query<{ id: number; quota: number }>(SELECT_MEMBER_QUOTAS)
  const isLimited = teamQuota !== null || quotas.length > 0
  const stored = isLimited ? await query<{ author: number; bytes: number }>(SELECT_STORED_BYTES) : []
  return {
    teamQuota,
    quotaByMember: new Map(quotas.map(({ id, quota }) => [id, quota])),
    bytesByMember: new Map(stored.map(({ author, bytes }) => [author, bytes])),
  }
}

function sizeOf({ bytes, quota_bytes }: StoredBytes): string {
  return `${megabytes(bytes)} on the hub, and ${megabytes(quota_bytes)} are allowed`
}

function quotaProblem(what: string, todo: string): HubProblem {
  return new HubProblem(507, "quota", `${what}. Ask the hub's operator for more, or ${todo}.`)
}

/** Sets the limit for a tenant. Without `bytes`, there is none. */
export async function setTenantQuota(query: Query, tenant: number, bytes: number | undefined): Promise<void> {
  await query(
    `update hub.tenant set settings = case when $2::bigint is null then settings - 'quota_bytes'
       else settings || jsonb_build_object('quota_bytes', $2::bigint) end where id = $1`,
    [tenant, bytes ?? null],
  )
  await recordAudit(query, { tenant }, { action: "quota", detail: { bytes: bytes ?? "none" } })
}

export async function setMemberQuota(
  query: Query,
  tenant: number,
  member: number,
  bytes: number | undefined,
): Promise<void> {
  await query("update hub.member set quota_bytes = $3 where tenant = $1 and id = $2", [tenant, member, bytes ?? null])
  await recordAudit(query, { tenant }, { action: "quota", about: member, detail: { bytes: bytes ?? "none" } })
}
