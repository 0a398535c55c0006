import type { Person } from "../store/logins.ts"

const MOST_GROUPS = 1_000
const LONGEST = 200
/** A number is added to a name that is taken. */
const LONGEST_NAME = 50

/** Who the claims of an identity provider speak of. An e-mail that it has not verified is not taken: anybody can type one. */
export function personIn(issuer: string, claims: Record<string, unknown>): Person {
  const isVerified = claims.email_verified === true || claims.email_verified === "true"
  const email = isVerified ? textIn(claims.email) : undefined
  const display = textIn(claims.name)
  return {
    issuer,
    subject: String(claims.sub),
    ...(email !== undefined && { email }),
    ...(display !== undefined && { display }),
    name: nameFrom(email) ?? nameFrom(textIn(claims.preferred_username)) ?? nameFrom(display) ?? "member",
    groups: groupsIn(claims.groups),
  }
}

function groupsIn(claim: unknown): string[] {
  const named = typeof claim === "string" ? [claim] : Array.isArray(claim) ? claim : []
  return [...new Set(named.filter((one): one is string => textIn(one) === one))].slice(0, MOST_GROUPS)
}

function textIn(claim: unknown): string | undefined {
  return typeof claim === "string" && claim !== "" && claim.length <= LONGEST && !claim.includes("\0")
    ? claim
    : undefined
}

/** As refs can say it: ann.lee of Ann.Lee@example.com. */
function nameFrom(text = ""): string | undefined {
  const plain = text
    .replace(/@.*$/s, "")
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9_.-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, LONGEST_NAME)
    .replace(/[-.]+$/, "")
  return plain === "" ? undefined : plain
}
