import type { StoredMessage } from "../../../src/store/history/store.ts"
import { auditForOperator, recordAudit, type StoredAuditEntry } from "./audit.ts"
import type { Database, Query } from "./connection.ts"
import { beginReading, openHubHistory } from "./reader.ts"
import { AUTHOR_SCOPE } from "./scope.ts"
import { tenantKeyOf } from "./tenant.ts"
import { type TokenInfo, tokensForOperator } from "./tokens.ts"

export type ExportedFile = { name: string; lines: AsyncIterable<object> | Iterable<object> }

/** Everything that a tenant stores about one member, for the operator. The audit log records the export. */
export async function memberData(
  db: Database,
  query: Query,
  { tenant, member }: { tenant: number; member: number },
): Promise<ExportedFile[]> {
  await recordAudit(query, { tenant }, { action: "member_export", about: member })
  const [person] = await query<{ name: string }>(SELECT_MEMBER, [tenant, member])
  const tokens: TokenInfo[] = await tokensForOperator(query, tenant, member)
  const audit: StoredAuditEntry[] = await auditForOperator(query, { tenant, member })
  return [
    { name: "member.jsonl", lines: [person!] },
    { name: "conversations.jsonl", lines: conversationsOf(db, query, { tenant, member }, person!.name) },
    { name: "consents.jsonl", lines: await query<object>(SELECT_CONSENTS, [tenant, member]) },
    { name: "grants.jsonl", lines: await query<object>(SELECT_GRANTS, [tenant, member]) },
    { name: "requests.jsonl", lines: await query<object>(SELECT_REQUESTS, [tenant, member]) },
    { name: "tokens.jsonl", lines: tokens },
    { name: "audit.jsonl", lines: audit },
  ]
}

type OwnConversation = { source: string; id: string; quarantined_at: Date | null; quarantined_by: string[] | null }

/** Reads as the tables' owner, because neither a member who left nor the index can read quarantined conversations. */
async function* conversationsOf(
  db: Database,
  query: Query,
  { tenant, member }: { tenant: number; member: number },
  owner: string,
): AsyncGenerator<{ messages: StoredMessage[] }> {
  await query(SET_MEMBER, [String(tenant), String(member)])
  const key = await tenantKeyOf(db, query)
  const history = openHubHistory((work) => work(beginReading(query, key)), { scope: AUTHOR_SCOPE })
  for (const { source, id, quarantined_at, quarantined_by } of await query<OwnConversation>(SELECT_OWN_CONVERSATIONS, [
    tenant,
    member,
  ])) {
    const ref = { owner, source, id }
    const row = await history.conversation(ref)
    if (!row) continue
    const hidden = quarantined_at !== null && { quarantined_at: quarantined_at.toISOString(), quarantined_by }
    yield { ...row, ...hidden, messages: await history.messages(ref) }
  }
}

const SELECT_MEMBER =
  "select name, role, email, subject, display, groups, created_at, disabled_at from hub.member where tenant = $1 and id = $2"
const SET_MEMBER = "select set_config('hub.tenant', $1, true), set_config('hub.member', $2, true)"
const SELECT_OWN_CONVERSATIONS = `select source, native_id as id, quarantined_at, quarantined_by from hub.conversation
  where tenant = $1 and author = $2 and rev > 0 order by hub.conversation.id`
const SELECT_CONSENTS = `select p.key as project, c.since, c.until, c.what from hub.consent c
  join hub.project p on p.tenant = c.tenant and p.id = c.project where c.tenant = $1 and c.member = $2 order by c.since`
const SELECT_GRANTS = `select p.key as project, g.level, g.group_level from hub.project_grant g
  join hub.project p on p.tenant = g.tenant and p.id = g.project where g.tenant = $1 and g.member = $2 order by p.key`
const SELECT_REQUESTS = `select p.key as project, r.at, r.denied_at from hub.access_request r
  join hub.project p on p.tenant = r.tenant and p.id = r.project where r.tenant = $1 and r.member = $2 order by r.at`
