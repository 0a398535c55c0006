import type { HubToken } from "../../../src/hub-client/client.ts"
import { recordAudit } from "./audit.ts"
import type { Database, Query, Viewer } from "./connection.ts"
import { HubProblem } from "./problem.ts"
import { TOKEN_SCOPE } from "./scope.ts"

/** The public facts about a token. The token itself is not stored, only a hash of it. */
export type TokenInfo = HubToken & { member: string }

export async function ownTokens(db: Database, viewer: Viewer): Promise<TokenInfo[]> {
  return (await db.as(viewer, (query) => query<TokenRow>(SELECT_OWN_TOKENS))).map(infoOf)
}

export async function revokeOwnToken(db: Database, viewer: Viewer, id: number): Promise<void> {
  await db.as(viewer, async (query) => {
    const [revoked] = await query<{ name: string }>(REVOKE_OWN_TOKEN, [id])
    if (!revoked)
      throw new HubProblem(404, "not_found", `You have no valid token ${id}. \`dex hub tokens\` lists your tokens.`)
    await recordAudit(query, viewer, { action: "token_revoke", target: revoked.name, about: viewer.member })
  })
}

/** The tokens of all members of a tenant, or of one. */
export async function tokensForOperator(query: Query, tenant: number, member?: number): Promise<TokenInfo[]> {
  return (await query<TokenRow>(SELECT_TOKENS_OF_TENANT, [tenant, member ?? null])).map(infoOf)
}

export async function revokeToken(query: Query, tenant: number, id: number): Promise<void> {
  const [revoked] = await query<{ name: string; member: number }>(REVOKE_TOKEN, [tenant, id])
  if (!revoked)
    throw new HubProblem(404, "not_found", `There is no valid token ${id}. \`dex hub admin token list\` lists them.`)
  await recordAudit(query, { tenant }, { action: "token_revoke", target: revoked.name, about: revoked.member })
}

type TokenRow = Omit<TokenInfo, `${string}_at`> &
  Record<"created_at", Date> &
  Record<"expires_at" | "last_used_at" | "revoked_at", Date | null>

function infoOf({ created_at, expires_at, last_used_at, revoked_at, ...row }: TokenRow): TokenInfo {
  return {
    ...row,
    id: Number(row.id),
    created_at: created_at.toISOString(),
    expires_at: expires_at?.toISOString(),
    last_used_at: last_used_at?.toISOString(),
    revoked_at: revoked_at?.toISOString(),
  }
}

const SELECT_TOKENS = `select t.id, m.name as member, t.name, t.kind, t.scopes, t.created_at, t.expires_at, t.last_used_at, t.revoked_at
  from hub.token t join hub.member m on m.tenant = t.tenant and m.id = t.member`
const SELECT_OWN_TOKENS = `${SELECT_TOKENS} where ${TOKEN_SCOPE} order by t.id`
const REVOKE_OWN_TOKEN = `update hub.token t set revoked_at = now() where ${TOKEN_SCOPE} and t.id = $1 and t.revoked_at is null returning t.name`
const SELECT_TOKENS_OF_TENANT = `${SELECT_TOKENS} where t.tenant = $1 and ($2::int is null or t.member = $2) order by t.id`
const REVOKE_TOKEN = `update hub.token set revoked_at = now() where tenant = $1 and id = $2 and revoked_at is null returning name, member`
