import {
  choice,
  flag,
  type Infer,
  integer,
  listOf,
  mapOf,
  object,
  optional,
  type Schema,
  text,
} from "../core/schema.ts"

// The commands of operators and admins on a hub. The hub's routes, its OpenAPI document and `dex hub admin` follow
// from this table.

/** An operator, an admin of a tenant, or also its auditors. */
export type AdminRole = "operator" | "admin" | "auditor"

export type AdminRoute<I extends Schema = Schema, O extends Schema = Schema> = {
  method: "GET" | "POST" | "PUT" | "DELETE"
  /** Fields of the input with a colon are in the path. The others are in the query of a GET, or in the body. */
  path: string
  who: AdminRole
  summary: string
  input: I
  output: O
  /** The fields that the command takes as words, in this order. The others are options. */
  words: readonly string[]
  /** The sentence that the command prints if it worked. If absent, it prints the list in the output, one JSON object per line. */
  done?(input: Infer<I>, output: Infer<O>): string
}

function route<I extends Schema, O extends Schema>(one: AdminRoute<I, O>): AdminRoute<I, O> {
  return one
}

const nothing = object({})
const tenantName = () => text("The tenant's name.")
const memberName = () => text("The member's name.")
const projectKey = () => text("The project, such as github.com/acme/api.")
const groupName = () => text("A group of the identity provider.")
const size = () => text("A size such as 500MB, 50GB or 1TB, or none.")
const time = (description?: string) => text(description)
const roles = ["member", "auditor", "admin"] as const
const levels = ["read", "write", "own"] as const
const newProject = () => optional(flag("Also if nobody has shared the project yet."))
const pageInput = {
  after: optional(text("The `next` of the previous page.")),
  limit: optional(integer("How many lines at most: 1 to 1000.")),
}
const pageNext = optional(
  text("Where the next page begins; what is written later follows there. Absent if nothing was ever written."),
)
const codeOutput = object({ code: text("Works once. It is shown only now."), expires_at: time() })
const codeNote = (who: string, command: string, { code, expires_at }: { code: string; expires_at: string }) =>
  `${code}\n\nIt works once, until ${expires_at.slice(0, 16).replace("T", " ")} UTC: ${who} runs \`${command}\` and pastes it.`

/** A line of the audit log, without its time. */
const auditFields = {
  at: time(),
  action: text(),
  target: optional(text()),
  detail: { type: "object", additionalProperties: true } as Schema<Record<string, unknown>>,
}

export const adminRoutes = {
  "tenant add": route({
    method: "POST",
    path: "/v1/admin/tenants",
    who: "operator",
    summary: "Add a company or team",
    input: object({ tenant: tenantName() }),
    output: nothing,
    words: ["tenant"],
    done: ({ tenant }) => `Added ${tenant}. To invite its first admin: dex hub admin tenant admin ${tenant} NAME`,
  }),
  "tenant list": route({
    method: "GET",
    path: "/v1/admin/tenants",
    who: "operator",
    summary: "List the tenants, with what they store",
    input: nothing,
    output: object({
      tenants: listOf(
        object({
          name: text(),
          created_at: time(),
          members: integer(),
          admins: integer(),
          conversations: integer(),
          stored_bytes: integer(),
          quota_bytes: optional(integer()),
          login: optional(text("The identity provider whose people may log in.")),
          search: choice(["files", "opensearch", "moving"]),
          delete_at: optional(time("When it is deleted.")),
        }),
      ),
    }),
    words: [],
  }),
  "tenant admin": route({
    method: "POST",
    path: "/v1/admin/tenants/:tenant/admins",
    who: "operator",
    summary: "Invite the first admin of a tenant, or another one if none can log in",
    input: object({ tenant: tenantName(), name: memberName() }),
    output: codeOutput,
    words: ["tenant", "name"],
    done: ({ name }, output) => codeNote(name, "dex hub login ADDRESS", output),
  }),
  "tenant quota": route({
    method: "PUT",
    path: "/v1/admin/tenants/:tenant/quota",
    who: "operator",
    summary: "Set how much a tenant may store, uncompressed",
    input: object({ tenant: tenantName(), size: size() }),
    output: nothing,
    words: ["tenant", "size"],
    done: ({ tenant, size }) => (size === "none" ? `${tenant} has no storage limit.` : `${tenant} may store ${size}.`),
  }),
  "tenant login": route({
    method: "PUT",
    path: "/v1/admin/tenants/:tenant/login",
    who: "operator",
    summary: "Let people of an identity provider log in",
    input: object({
      tenant: tenantName(),
      issuer: optional(text("The identity provider's address. If absent, the one that the hub is set up with.")),
      domain: optional(text("Only people with a verified e-mail address of this domain.")),
      group: optional(text("Only people in this group.")),
      everyone: optional(flag("Everybody whom the provider knows.")),
    }),
    output: nothing,
    words: ["tenant"],
    done: ({ tenant, domain, group }) => {
      const conditions = [domain && `an address of ${domain}`, group && `the group ${group}`]
        .filter(Boolean)
        .join(" and ")
      return `People of the identity provider can log in to ${tenant}${conditions && `, with ${conditions}`}.`
    },
  }),
  "tenant no-login": route({
    method: "DELETE",
    path: "/v1/admin/tenants/:tenant/login",
    who: "operator",
    summary: "Let nobody log in with an identity provider any more",
    input: object({ tenant: tenantName() }),
    output: nothing,
    words: ["tenant"],
    done: ({ tenant }) =>
      `Nobody can log in to ${tenant} with an identity provider any more. Existing tokens keep working.`,
  }),
  "tenant search": route({
    method: "PUT",
    path: "/v1/admin/tenants/:tenant/search",
    who: "operator",
    summary: "Set where a tenant's words are indexed",
    input: object({ tenant: tenantName(), engine: choice(["opensearch", "files"]) }),
    output: object({ state: choice(["opensearch", "building", "files"]) }),
    words: ["tenant", "engine"],
    done: ({ tenant }, { state }) =>
      ({
        opensearch: `OpenSearch gets the words of ${tenant}. Until its index is complete, searches use the files of the hubs.`,
        building: `Each hub builds an index of the words of ${tenant} in its files, and searches OpenSearch until it has. When \`dex-hub check\` finds no problem on any hub, run this again: then OpenSearch loses the words.`,
        files: `The words of ${tenant} are only in the files of the hubs.`,
      })[state],
  }),
  "tenant disk-gone": route({
    method: "DELETE",
    path: "/v1/admin/tenants/:tenant/disks/:node",
    who: "operator",
    summary: "Say that a node's disk was destroyed, so that receipts no longer wait for it",
    input: object({ tenant: tenantName(), node: text("The node of OpenSearch.") }),
    output: nothing,
    words: ["tenant", "node"],
    done: ({ tenant, node }) =>
      `Receipts of ${tenant} no longer wait for the disk of ${node}. This is in the audit log.`,
  }),
  "tenant delete": route({
    method: "DELETE",
    path: "/v1/admin/tenants/:tenant",
    who: "operator",
    summary: "Delete a tenant in 7 days: rows, keys and index",
    input: object({ tenant: tenantName() }),
    output: object({ delete_at: time() }),
    words: ["tenant"],
    done: ({ tenant }, { delete_at }) =>
      `${tenant} is deleted on ${delete_at.slice(0, 10)}, and works until then. To take it back: dex hub admin tenant keep ${tenant}`,
  }),
  "tenant keep": route({
    method: "PUT",
    path: "/v1/admin/tenants/:tenant/keep",
    who: "operator",
    summary: "Take the deletion of a tenant back",
    input: object({ tenant: tenantName() }),
    output: nothing,
    words: ["tenant"],
    done: ({ tenant }) => `${tenant} is not deleted.`,
  }),
  "tenant receipts": route({
    method: "GET",
    path: "/v1/admin/tenant-receipts",
    who: "operator",
    summary: "List the tenants that were deleted, newest first",
    input: nothing,
    output: object({
      receipts: listOf(
        object({
          name: text(),
          at: time("When its keys were deleted."),
          members: integer(),
          conversations: integer(),
          rows_gone_at: optional(time()),
          key_gone_at: optional(time("When the keys were removed from PostgreSQL's files.")),
        }),
      ),
    }),
    words: [],
  }),
  "operator list": route({
    method: "GET",
    path: "/v1/admin/operators",
    who: "operator",
    summary: "List the operators",
    input: nothing,
    output: object({
      operators: listOf(
        object({
          name: text(),
          created_at: time(),
          disabled_at: optional(time()),
          last_used_at: optional(time()),
          expires_at: optional(time()),
        }),
      ),
    }),
    words: [],
  }),
  "operator add": route({
    method: "POST",
    path: "/v1/admin/operators",
    who: "operator",
    summary: "Invite an operator, or one who lost their token",
    input: object({ name: text("The operator's name.") }),
    output: codeOutput,
    words: ["name"],
    done: ({ name }, output) => codeNote(name, "dex hub admin login ADDRESS", output),
  }),
  "operator remove": route({
    method: "DELETE",
    path: "/v1/admin/operators/:name",
    who: "operator",
    summary: "End an operator's access",
    input: object({ name: text("The operator's name.") }),
    output: nothing,
    words: ["name"],
    done: ({ name }) => `${name} is no longer an operator.`,
  }),
  "operator audit": route({
    method: "GET",
    path: "/v1/admin/operators-audit",
    who: "operator",
    summary: "List what operators did, oldest first",
    input: object(pageInput),
    output: object({
      lines: listOf(object({ ...auditFields, operator: optional(text()), tenant: optional(text()) })),
      next: pageNext,
    }),
    words: [],
  }),
  health: route({
    method: "GET",
    path: "/v1/admin/health",
    who: "operator",
    summary: "Show this hub's version, and how far its index is behind",
    input: nothing,
    output: object({
      version: text(),
      ready: flag(),
      problem: optional(text()),
      waiting: integer("Questions that are waiting."),
      lags: mapOf(integer(), "How many changes the index of each tenant is behind, by the tenant's number."),
    }),
    words: [],
    done: (_, output) => JSON.stringify(output),
  }),

  "member list": route({
    method: "GET",
    path: "/v1/admin/members",
    who: "admin",
    summary: "List the members of your tenant",
    input: nothing,
    output: object({
      members: listOf(
        object({
          name: text(),
          role: text(),
          email: optional(text()),
          created_at: time(),
          disabled_at: optional(time()),
          login: flag("They log in with the identity provider."),
          quota_bytes: optional(integer()),
        }),
      ),
    }),
    words: [],
  }),
  "member add": route({
    method: "POST",
    path: "/v1/admin/members",
    who: "admin",
    summary: "Add a person, and print a code with which they log in",
    input: object({
      name: memberName(),
      role: optional(choice(roles, "member, if absent.")),
      email: optional(text("With it, they are recognised at their first login with the identity provider.")),
    }),
    output: codeOutput,
    words: ["name"],
    done: ({ name }, output) => codeNote(name, "dex hub login ADDRESS", output),
  }),
  "member invite": route({
    method: "POST",
    path: "/v1/admin/members/:name/invitations",
    who: "admin",
    summary: "Print another code for a person who lost their token",
    input: object({ name: memberName() }),
    output: codeOutput,
    words: ["name"],
    done: ({ name }, output) => codeNote(name, "dex hub login ADDRESS", output),
  }),
  "member role": route({
    method: "PUT",
    path: "/v1/admin/members/:name/role",
    who: "admin",
    summary: "Change a person's role",
    input: object({ name: memberName(), role: choice(roles) }),
    output: nothing,
    words: ["name", "role"],
    done: ({ name, role }) =>
      `${name} is ${role === "member" ? "a member" : `an ${role}`}. Their tokens have ended: invite them again.`,
  }),
  "member quota": route({
    method: "PUT",
    path: "/v1/admin/members/:name/quota",
    who: "admin",
    summary: "Set how much one person may store",
    input: object({ name: memberName(), size: size() }),
    output: nothing,
    words: ["name", "size"],
    done: ({ name, size }) => (size === "none" ? `${name} has no limit of their own.` : `${name} may store ${size}.`),
  }),
  "member disable": route({
    method: "DELETE",
    path: "/v1/admin/members/:name",
    who: "admin",
    summary: "End a person's access at once; what they shared stays",
    input: object({ name: memberName() }),
    output: nothing,
    words: ["name"],
    done: ({ name }) => `${name} no longer has access. What they shared stays, under their name.`,
  }),
  "service add": route({
    method: "POST",
    path: "/v1/admin/services",
    who: "admin",
    summary: "Print a token for CI: it reads one project, and pushes nothing",
    input: object({
      name: text("The service's name."),
      project: projectKey(),
      days: optional(integer("How long the token lasts. 90, if absent.", { minimum: 1, maximum: 3650 })),
      new: newProject(),
    }),
    output: object({ token: text("It is shown only now."), expires_at: time() }),
    words: ["name", "project"],
    done: (_, { token }) => token,
  }),
  "token list": route({
    method: "GET",
    path: "/v1/admin/tokens",
    who: "admin",
    summary: "List all tokens, without their secrets",
    input: nothing,
    output: object({
      tokens: listOf(
        object({
          id: integer(),
          member: text(),
          name: text(),
          kind: text(),
          scopes: listOf(text()),
          created_at: time(),
          expires_at: optional(time()),
          last_used_at: optional(time()),
          revoked_at: optional(time()),
        }),
      ),
    }),
    words: [],
  }),
  "token revoke": route({
    method: "DELETE",
    path: "/v1/admin/tokens/:id",
    who: "admin",
    summary: "End a token",
    input: object({ id: integer("The token's number.", { minimum: 1 }) }),
    output: nothing,
    words: ["id"],
    done: ({ id }) => `Token ${id} is revoked.`,
  }),
  "project list": route({
    method: "GET",
    path: "/v1/admin/projects",
    who: "admin",
    summary: "List the projects, their owners and how long they keep conversations",
    input: nothing,
    output: object({
      projects: listOf(
        object({ key: text(), owners: listOf(text()), members: integer(), keep_days: optional(integer()) }),
      ),
    }),
    words: [],
  }),
  "project keep": route({
    method: "PUT",
    path: "/v1/admin/projects/:project/keep",
    who: "admin",
    summary: "Set how long a project keeps a conversation after its end",
    input: object({ project: projectKey(), days: text("A number of days, or forever.") }),
    output: nothing,
    words: ["project", "days"],
    done: ({ project, days }) =>
      days === "forever"
        ? `${project} keeps everything.`
        : `${project} keeps a conversation for ${days} days after its end. What is older is deleted within an hour.`,
  }),
  "project owner": route({
    method: "PUT",
    path: "/v1/admin/projects/:project/owner",
    who: "admin",
    summary: "Make a member the owner of a project, in place of those who own it",
    input: object({ project: projectKey(), name: memberName() }),
    output: object({ former_owners: listOf(text()) }),
    words: ["project", "name"],
    done: ({ project, name }, { former_owners }) =>
      `${name} owns ${project}.${former_owners
        .map(
          (one) =>
            ` ${one} owned it before and can still read and push. To revoke that: \`dex hub admin grant ${one} ${project} --level none\`.`,
        )
        .join("")}`,
  }),
  grant: route({
    method: "PUT",
    path: "/v1/admin/projects/:project/members/:name",
    who: "admin",
    summary: "Let a member read, or push to, a project; its owners do that themselves with dex hub grant",
    input: object({
      name: memberName(),
      project: projectKey(),
      level: optional(choice([...levels, "none"] as const, "write, if absent.")),
      new: newProject(),
    }),
    output: nothing,
    words: ["name", "project"],
    done: ({ name, project, level = "write" }) =>
      level === "none" ? `${name} no longer has access to ${project}.` : `${name} has access to ${project} (${level}).`,
  }),
  "rule list": route({
    method: "GET",
    path: "/v1/admin/rules",
    who: "admin",
    summary: "List the rules that give access without a request",
    input: nothing,
    output: object({ rules: listOf(object({ pattern: text() })) }),
    words: [],
  }),
  "rule add": route({
    method: "PUT",
    path: "/v1/admin/rules/:pattern",
    who: "admin",
    summary: "Give members who share a project of a folder access to it",
    input: object({ pattern: text("A folder of projects: github.com/acme/*") }),
    output: nothing,
    words: ["pattern"],
    done: ({ pattern }) =>
      `Members who share a project of ${pattern} get write access at once. The hub cannot check whether they have the repository.`,
  }),
  "rule remove": route({
    method: "DELETE",
    path: "/v1/admin/rules/:pattern",
    who: "admin",
    summary: "End such a rule",
    input: object({ pattern: text("A folder of projects: github.com/acme/*") }),
    output: nothing,
    words: ["pattern"],
    done: ({ pattern }) => `${pattern} no longer grants anything. Members keep the access that it granted.`,
  }),
  "group list": route({
    method: "GET",
    path: "/v1/admin/groups",
    who: "admin",
    summary: "List the access and roles of groups",
    input: nothing,
    output: object({
      groups: listOf(
        object({ group: text(), project: optional(text()), level: optional(text()), role: optional(text()) }),
      ),
    }),
    words: [],
  }),
  "group grant": route({
    method: "PUT",
    path: "/v1/admin/groups/:group/projects/:project",
    who: "admin",
    summary: "Give a project to those who log in with a group",
    input: object({
      group: groupName(),
      project: projectKey(),
      level: optional(choice(levels, "write, if absent.")),
      new: newProject(),
    }),
    output: nothing,
    words: ["group", "project"],
    done: ({ group, project, level = "write" }) =>
      `Everyone who logs in with the group ${group} has access to ${project} (${level}).`,
  }),
  "group revoke": route({
    method: "DELETE",
    path: "/v1/admin/groups/:group/projects/:project",
    who: "admin",
    summary: "End that",
    input: object({ group: groupName(), project: projectKey() }),
    output: nothing,
    words: ["group", "project"],
    done: ({ group, project }) =>
      `${group} no longer gives access to ${project}. Access that was granted to a member by name stays.`,
  }),
  "group role": route({
    method: "PUT",
    path: "/v1/admin/groups/:group/role",
    who: "admin",
    summary: "Give a role to those who log in with a group; member ends that",
    input: object({ group: groupName(), role: choice(roles) }),
    output: nothing,
    words: ["group", "role"],
    done: ({ group, role }) =>
      `Everyone who logs in with the group ${group} is ${role === "member" ? "a member" : `an ${role}`}.`,
  }),
  audit: route({
    method: "GET",
    path: "/v1/admin/audit",
    who: "auditor",
    summary: "List who did what, oldest first",
    input: object(pageInput),
    output: object({
      lines: listOf(
        object({
          id: integer(),
          ...auditFields,
          member: optional(text("Absent if an operator or the hub itself acted.")),
          operator: optional(text()),
          token: optional(integer("The number of the token that was used.")),
          address: optional(text("The client's address.")),
        }),
      ),
      next: pageNext,
    }),
    words: [],
  }),
  "receipt list": route({
    method: "GET",
    path: "/v1/admin/receipts",
    who: "admin",
    summary: "List what was deleted, without its content, newest first",
    input: nothing,
    output: object({
      receipts: listOf(
        object({
          id: integer(),
          at: time(),
          member: text("Whose conversations they were."),
          conversations: integer(),
          why: text(),
          key_gone_at: optional(time()),
          words_gone_at: optional(time()),
        }),
      ),
    }),
    words: [],
  }),
  "glass list": route({
    method: "GET",
    path: "/v1/admin/glass",
    who: "auditor",
    summary: "List who broke the glass for which conversation, newest first",
    input: nothing,
    output: object({
      broken: listOf(object({ by: text(), ref: text(), reason: text(), at: time(), until: time() })),
    }),
    words: [],
  }),
}

export type AdminCommand = keyof typeof adminRoutes
