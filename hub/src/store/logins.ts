import type { Database, MemberRole } from "./connection.ts"
import type { Identity } from "./identity.ts"
import { newToken, tokenHash } from "./people.ts"
import { HubProblem } from "./problem.ts"

/** A person whom an identity provider authenticated. The e-mail address is verified. */
export type Person = {
  issuer: string
  subject: string
  email?: string
  display?: string
  /** The preferred name for refs. If it is taken, a number is appended. */
  name: string
  groups: string[]
}

/**
 * Creates a token for this person, who becomes a member at their first login. Throws a HubProblem (403) if they may not log in.
 */
export async function logInPerson(db: Database, person: Person, days: number): Promise<string> {
  const token = newToken()
  const { issuer, subject, email = null, display = null, name, groups } = person
  const [row] = await db.asNobody({}, (query) =>
    query<{ outcome: keyof typeof REFUSALS | "in" }>(LOG_IN, [
      ...[issuer, subject, email, display, name, groups, tokenHash(token), days],
    ]),
  )
  const { outcome } = row!
  if (outcome !== "in") throw new HubProblem(403, "login", REFUSALS[outcome])
  return token
}

/** The member with an access token's subject, if they have logged in before and have not left. */
export async function identifySubject(db: Database, issuer: string, subject: string): Promise<Identity | undefined> {
  const [row] = await db.asNobody({}, (query) =>
    query<{ tenant: number; member: number; role: MemberRole; name: string; slug: string }>(
      SELECT_MEMBER_WITH_SUBJECT,
      [issuer, subject],
    ),
  )
  if (!row) return undefined
  const { tenant, member, role, name, slug } = row
  return { viewer: { tenant, member, role, name }, tenant: slug, scopes: ["read"] }
}

const REFUSALS = {
  no_tenant: "Nobody can log in this way yet. The operator must run `dex hub admin tenant login` first.",
  domain: "Your e-mail address does not belong to this team, or your identity provider has not verified it.",
  group: "You are not in the group that may use this hub.",
  left: "Your access to this hub has ended.",
}

const LOG_IN = "select hub.log_in($1, $2, $3, $4, $5, $6, $7, $8) as outcome"
const SELECT_MEMBER_WITH_SUBJECT = "select tenant, member, role, name, slug from hub.known_as($1, $2)"
