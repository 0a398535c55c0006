import { recordAudit } from "./audit.ts"
import type { Query } from "./connection.ts"

/** Adds a rule: a member who shares a project in this folder is granted access to it. */
export async function addRule(query: Query, tenant: number, pattern: string): Promise<void> {
  await query("insert into hub.project_rule (tenant, pattern) values ($1, $2) on conflict do nothing", [
    tenant,
    pattern,
  ])
  await recordAudit(query, { tenant }, { action: "rule", target: pattern, detail: { level: "write" } })
}

/** Removes a rule. Members keep the access that it granted. Returns false if there was no such rule. */
export async function removeRule(query: Query, tenant: number, pattern: string): Promise<boolean> {
  const removed = await query("delete from hub.project_rule where tenant = $1 and pattern = $2 returning pattern", [
    tenant,
    pattern,
  ])
  if (removed.length > 0)
    await recordAudit(query, { tenant }, { action: "rule", target: pattern, detail: { level: "none" } })
  return removed.length > 0
}

export function rulesOf(query: Query, tenant: number): Promise<{ pattern: string }[]> {
  return query("select pattern from hub.project_rule where tenant = $1 order by pattern", [tenant])
}
