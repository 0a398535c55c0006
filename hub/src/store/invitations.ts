import { randomBytes } from "node:crypto"
import { recordAudit } from "./audit.ts"
import { BEGIN_AS, type Database, type MemberRole, type Query } from "./connection.ts"
import { addToken, defaultScopes, tokenHash } from "./people.ts"
import { HubProblem } from "./problem.ts"

const VALID_DAYS = 7

/** Creates a code that can be exchanged for one token, once. Only its hash is stored. */
export async function addInvitation(query: Query, { tenant, member }: { tenant: number; member: number }) {
  const code = `dexi_${randomBytes(32).toString("base64url")}`
  await query(ADD_INVITATION, [tokenHash(code), tenant, member, VALID_DAYS])
  await recordAudit(query, { tenant }, { action: "invite", about: member })
  return code
}

/** Exchanges a code for a token. If several clients send the same code at once, only one of them gets a token. */
export async function redeemInvitation(db: Database, code: string): Promise<string> {
  const hash = tokenHash(code)
  return db.asNobody({ "hub.invitation": hash.toString("hex") }, async (query) => {
    const [invited] = await query<{ tenant: number; member: number }>(USE_INVITATION, [hash])
    if (!invited) throw invitationProblem()
    const { tenant, member } = invited
    const [memberRow] = await query<{ role: MemberRole }>(SELECT_ROLE, [tenant, member])
    const [begun] = await query<{ is_theirs: boolean }>(BEGIN_AS, [tenant, member, memberRow?.role ?? ""])
    if (!memberRow || !begun!.is_theirs) throw invitationProblem()
    const scopes = defaultScopes(memberRow.role)
    return addToken(query, { tenant, member, kind: "personal", scopes, name: "invitation" }, member)
  })
}

function invitationProblem(): HubProblem {
  return new HubProblem(
    403,
    "invitation",
    "This invitation was already used, has expired or is unknown. Ask for a new one.",
  )
}

const ADD_INVITATION = `insert into hub.invitation (hash, tenant, member, expires_at) values ($1, $2, $3, now() + make_interval(days => $4))`
const USE_INVITATION = `update hub.invitation set used_at = now() where hash = $1 and used_at is null and expires_at > now() returning tenant, member`
const SELECT_ROLE =
  "select role from hub.member where tenant = $1 and id = $2 and disabled_at is null and subject is null"
