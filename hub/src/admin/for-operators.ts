import {
  addTenantAs,
  deleteLater,
  inviteAdmin,
  keepTenant,
  tenantReceipts,
  tenantsFor,
} from "../store/administration.ts"
import { recordAudit } from "../store/audit.ts"
import { setProvider } from "../store/groups.ts"
import { inviteOperator, operatorAudit, operators, removeOperator } from "../store/operators.ts"
import { tenantNamed } from "../store/people.ts"
import { HubProblem } from "../store/problem.ts"
import { setTenantQuota } from "../store/quota.ts"
import { removeLostDisk } from "../store/word-copies.ts"
import { moveToCluster, moveToFiles } from "../store/word-index.ts"
import { type AdminHandlers, bytesOf, checkedLimit, checkedName, checkedSlug, checkedText, invalid } from "./call.ts"

const DOMAIN = /^[a-z0-9][a-z0-9.-]{0,252}$/
const AFTER = /^\d{1,15}$/

/** The jobs of operators: tenants, quotas, health. They see no member and no text. */
export const operatorHandlers = {
  "tenant add": async ({ query, input, parts }) => {
    await addTenantAs(query, parts.db, checkedSlug(input.tenant))
    return {}
  },
  "tenant list": async ({ query }) => ({ tenants: await tenantsFor(query) }),
  "tenant admin": async ({ query, input }) =>
    inviteAdmin(query, await tenantNamed(query, checkedSlug(input.tenant)), checkedName(input.name)),
  "tenant quota": async ({ query, input }) => {
    const bytes = bytesOf(input.size)
    await setTenantQuota(query, await tenantNamed(query, checkedSlug(input.tenant)), bytes)
    return {}
  },
  "tenant login": async ({ query, input, parts }) => {
    const { issuer = parts.issuer, domain, group, everyone } = input
    if (issuer === undefined) throw invalid("Which identity provider? Give its address as issuer.")
    if (!domain && !group && !everyone) throw invalid("Who may log in? Give a domain, a group, or everyone.")
    if (domain && !DOMAIN.test(domain)) throw invalid("The domain is the part after the @, in lower case: example.com")
    const tenant = await tenantNamed(query, checkedSlug(input.tenant))
    await setProvider(query, tenant, {
      issuer: checkedText(issuer, "The issuer"),
      domain: domain || undefined,
      group: group ? checkedText(group, "A group") : undefined,
    })
    return {}
  },
  "tenant no-login": async ({ query, input }) => {
    await setProvider(query, await tenantNamed(query, checkedSlug(input.tenant)), undefined)
    return {}
  },
  "tenant search": async ({ query, input, parts }) => {
    const tenant = await tenantNamed(query, checkedSlug(input.tenant))
    if (input.engine === "opensearch" && !parts.hasCluster)
      throw new HubProblem(409, "no_cluster", "DEX_HUB_SEARCH_URL is not set. Set it for every hub first.")
    await recordAudit(query, { tenant }, { action: "search", target: input.engine })
    if (input.engine === "files") return { state: await moveToFiles(query, tenant) }
    await moveToCluster(query, tenant)
    return { state: "opensearch" as const }
  },
  "tenant disk-gone": async ({ query, input }) => {
    const tenant = await tenantNamed(query, checkedSlug(input.tenant))
    const node = checkedText(input.node, "A node")
    if (!(await removeLostDisk(query, tenant, node)))
      throw new HubProblem(404, "not_found", `No words of ${input.tenant} are on a node ${node}.`)
    await recordAudit(query, { tenant }, { action: "disk_gone", target: node })
    return {}
  },
  "tenant delete": async ({ query, input: { tenant } }) => ({
    delete_at: await deleteLater(query, await tenantNamed(query, checkedSlug(tenant)), tenant),
  }),
  "tenant keep": async ({ query, input: { tenant } }) => {
    await keepTenant(query, await tenantNamed(query, checkedSlug(tenant)), tenant)
    return {}
  },
  "tenant receipts": async ({ query }) => ({ receipts: await tenantReceipts(query) }),
  "operator list": async ({ query }) => ({ operators: await operators(query) }),
  "operator add": async ({ query, input }) => inviteOperator(query, checkedName(input.name)),
  "operator remove": async ({ query, input }) => {
    await removeOperator(query, checkedName(input.name))
    return {}
  },
  "operator audit": async ({ query, input: { after = "0", limit } }) => {
    if (!AFTER.test(after)) throw invalid("`after` is not from this log. Begin without it.")
    return operatorAudit(query, { after: Number(after), limit: checkedLimit(limit) })
  },
  health: async ({ parts: { version, ready, search } }) => {
    const { waiting, lags } = search.state()
    const problem = await ready?.check()
    return {
      ...{ version, waiting, problem, ready: problem === undefined },
      lags: Object.fromEntries(lags.map(({ tenant, lag }) => [String(tenant), lag])),
    }
  },
} satisfies Partial<AdminHandlers>
