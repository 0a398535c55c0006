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

type Usage = { at: number; team: number | null; members: Map<number, number>; bytes: Map<number, number> }

const MAX_AGE_MS = 60_000

const TEAM_QUOTA = `select (settings ->> 'quota_bytes')::bigint as quota from hub.tenant where id = ${TENANT}`
const MEMBER_QUOTAS = `select id, quota_bytes as quota from hub.member where tenant = ${TENANT} and quota_bytes is not null`
const STORED = `select author, coalesce(sum(stored_bytes), 0)::bigint as bytes from hub.conversation where ${TENANT_SCOPE} group by author`

/** Reads the sizes at most once a minute: a quota need not be exact, and not every plan should add up a tenant's sizes. */
export function createQuotas(db: Database, now: () => number = Date.now): Quotas {
  const usages = new Map<number, Promise<Usage>>()
  const usageOf = async (tenant: number): Promise<Usage> => {
    const cached = await usages.get(tenant)?.catch(() => undefined)
    if (cached && now() - cached.at < MAX_AGE_MS) return cached
    const usage = db.asIndex(tenant, async (query) => ({ at: now(), ...(await read(query)) }))
    usages.set(tenant, usage)
    return usage
  }
  const storedFor = async ({ tenant, member }: Viewer): Promise<ViewerStorage> => {
    const { team, members, bytes } = await usageOf(tenant)
    const quota = members.get(member)
    const all = [...bytes.values()].reduce((sum, one) => sum + one, 0)
    return {
      yours: quota === undefined ? undefined : { bytes: bytes.get(member) ?? 0, quota_bytes: quota },
      team: team === null ? undefined : { bytes: all, quota_bytes: team },
    }
  }
  return {
    storedFor,
    checkRoom: async (viewer) => {
      const { yours, team } = await storedFor(viewer)
      if (yours && yours.bytes >= yours.quota_bytes)
        throw quotaProblem(
          `What you share takes ${sizeOf(yours)}`,
          "stop sharing a project with `dex hub unshare --forget`",
        )
      if (team && team.bytes >= team.quota_bytes)
        throw quotaProblem(`What your team shares takes ${sizeOf(team)}`, "delete what is not needed")
    },
  }
}

async function read(query: Query): Promise<Omit<Usage, "at">> {
  const [tenant] = await query<{ quota: number | null }>(TEAM_QUOTA)
  const team = tenant?.quota ?? null
  const quotas = await query<{ id: number; quota: number }>(MEMBER_QUOTAS)
  const isLimited = team !== null || quotas.length > 0
  const stored = isLimited ? await query<{ author: number; bytes: number }>(STORED) : []
  return {
    team,
    members: new Map(quotas.map(({ id, quota }) => [id, quota])),
    bytes: new Map(stored.map(({ author, bytes }) => [author, bytes])),
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
