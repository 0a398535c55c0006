import type { Database, MemberRole } from "./connection.ts"
import type { Identity } from "./identity.ts"
import { newToken, tokenHash } from "./people.ts"
import { HubProblem } from "./problem.ts"

/** Whom an identity provider vouches for. An e-mail is one that it verified. */
export type Person = {
  issuer: string
  subject: string
  email?: string
  display?: string
  /** What refs are to call them; where somebody has that name already, they get another. */
  name: string
  groups: string[]
}

/** A token for this person, who is a member from their first login on. Throws a HubProblem (403) where they may not. */
export async function logInPerson(db: Database, person: Person, days: number): Promise<string> {
  const token = newToken()
  const { issuer, subject, email = null, display = null, name, groups } = person
  const [row] = await db.asNobody({}, (query) =>
    query<{ outcome: keyof typeof REFUSED | "in" }>(LOG_IN, [
      ...[issuer, subject, email, display, name, groups, tokenHash(token), days],
    ]),
  )
  const { outcome } = row!
  if (outcome !== "in") throw new HubProblem(403, "login", REFUSED[outcome])
  return token
}

/** Who an access token speaks for, by what it says of its subject: they logged in before, and have not left. */
export async function identifySubject(db: Database, issuer: string, subject: string): Promise<Identity | undefined> {
  const [row] = await db.asNobody({}, (query) =>
    query<{ tenant: number; member: number; role: MemberRole; name: string; slug: string }>(KNOWN_AS, [
      issuer,
      subject,
    ]),
  )
  if (!row) return undefined
  const { tenant, member, role, name, slug } = row
  return { viewer: { tenant, member, role, name }, tenant: slug, scopes: ["read"] }
}

const REFUSED = {
  no_tenant: "Nobody can log in this way yet. The operator runs `dex-hub tenant oidc`.",
  domain: "Your e-mail address is not one of this team's, or your identity provider has not verified it.",
  group: "You are not in the group that may use this hub.",
  left: "Your access to this hub has ended.",
}

const LOG_IN = "select hub.log_in($1, $2, $3, $4, $5, $6, $7, $8) as outcome"
const KNOWN_AS = "select tenant, member, role, name, slug from hub.known_as($1, $2)"
