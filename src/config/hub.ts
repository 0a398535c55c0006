import { closeSync, rmSync } from "node:fs"
import { join } from "node:path"
import { DexError, messageOf } from "../core/error.ts"
import { isAbsent } from "../core/look-at.ts"
import { isSamePath } from "../core/path-key.ts"
import { openFile, readOpened } from "../core/read-file.ts"
import type { Home } from "./home.ts"
import { isKey } from "./secret.ts"
import { replaceFile } from "./write.ts"

export const VISIBILITIES = ["private", "project", "org"] as const
export type Visibility = (typeof VISIBILITIES)[number]

/** The user's agreement to share parts of one project. */
export type Consent = {
  /** The project's folder on this machine. */
  project: string
  /** The hub's name for the project. */
  key: string
  what: string[]
  visibility: Visibility
  /** If set, only conversations that began at this time or later are shared. In milliseconds since 1970. */
  since?: number
  at: number
}

/** `hub.json`: the hub, the account there, and what may be sent. Only the user's own commands write it. */
export type HubChoices = {
  address?: string
  token?: string
  tenant?: string
  member?: string
  consents: Consent[]
}

const MAX_FILE_BYTES = 4 << 20

export function hubFile({ dir }: Pick<Home, "dir">): string {
  return join(dir, "hub.json")
}

/**
 * Returns the path of the database that lists the pushes that a hub acknowledged, and the conversations on hold. It contains no
 * secret, and backups include it.
 */
export function hubState({ dir }: Pick<Home, "dir">): string {
  return join(dir, "hub.db")
}

/**
 * Reads the hub's settings. Throws a DexError if the file cannot be read, or if others can read or write it. In both cases,
 * nothing is shared.
 */
export function readHub(home: Pick<Home, "dir">): HubChoices {
  const path = hubFile(home)
  const value = parseHubFile(path)
  const { address, token, tenant, member, consents } = value
  return {
    address: typeof address === "string" ? address : undefined,
    token: typeof token === "string" && isKey(token) ? token : undefined,
    tenant: typeof tenant === "string" ? tenant : undefined,
    member: typeof member === "string" ? member : undefined,
    consents: Array.isArray(consents) ? consents.filter(isConsent) : [],
  }
}

/** Whether a hub is configured and something is shared with it. Never throws. */
export function isSharing(home: Pick<Home, "dir">): boolean {
  try {
    const { address, token, consents } = readHub(home)
    return address !== undefined && token !== undefined && consents.length > 0
  } catch {
    return false // `dex hub status` reports what is wrong with the file
  }
}

export function writeHub(home: Pick<Home, "dir">, choices: HubChoices): void {
  replaceFile(hubFile(home), `${JSON.stringify(choices, undefined, 2)}\n`)
}

/** `hub-admin.json`: the hub that the user operates, and their operator's token there. */
export type OperatorLogin = { address?: string; token?: string; name?: string }

function operatorFile({ dir }: Pick<Home, "dir">): string {
  return join(dir, "hub-admin.json")
}

/** Reads who the user is as an operator. Throws a DexError if the file cannot be read, or if others can read or write it. */
export function readOperator(home: Pick<Home, "dir">): OperatorLogin {
  const { address, token, name } = parseHubFile(operatorFile(home), "nobody is logged in as an operator")
  return {
    address: typeof address === "string" ? address : undefined,
    token: typeof token === "string" && isKey(token) ? token : undefined,
    name: typeof name === "string" ? name : undefined,
  }
}

export function writeOperator(home: Pick<Home, "dir">, login: OperatorLogin): void {
  replaceFile(operatorFile(home), `${JSON.stringify(login, undefined, 2)}\n`)
}

export function removeHub(home: Pick<Home, "dir">): void {
  rmSync(hubFile(home), { force: true })
}

export function consentFor(
  choices: Pick<HubChoices, "consents">,
  project: string | undefined,
  platform: NodeJS.Platform,
): Consent | undefined {
  return project === undefined
    ? undefined
    : choices.consents.find((consent) => isSamePath(consent.project, project, platform))
}

/** Returns the choices with this consent for the project, or without any if `consent` is undefined. */
export function withConsent(
  choices: HubChoices,
  project: string,
  consent: Consent | undefined,
  platform: NodeJS.Platform,
): HubChoices {
  const otherConsents = choices.consents.filter((consent) => !isSamePath(consent.project, project, platform))
  return { ...choices, consents: consent ? [...otherConsents, consent] : otherConsents }
}

function parseHubFile(path: string, consequence = "nothing is shared"): Record<string, unknown> {
  const refuse = (why: string, cause?: unknown) =>
    new DexError("hub_file", `${path} ${why}, so ${consequence}. Fix it, or remove it and log in again.`, { cause })
  let text: string
  try {
    const file = openFile(path)
    try {
      if (process.platform !== "win32" && file.stat.mode & 0o077)
        throw new DexError(
          "hub_file",
          `Other users can read or change ${path}, so ${consequence}. Run: chmod 600 ${path}`,
        )
      text = readOpened(file, MAX_FILE_BYTES).toString("utf8")
    } finally {
      closeSync(file.fd)
    }
  } catch (error) {
    if (error instanceof DexError) throw error
    if (isAbsent(error)) return {}
    throw refuse(`cannot be read (${messageOf(error)})`, error)
  }
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // damaged JSON is reported below, like JSON that is not an object
  }
  throw refuse("is not a JSON object")
}

function isConsent(value: unknown): value is Consent {
  const consent = value as Consent | null
  return (
    typeof consent === "object" &&
    consent !== null &&
    typeof consent.project === "string" &&
    typeof consent.key === "string" &&
    Array.isArray(consent.what) &&
    consent.what.every((name) => typeof name === "string") &&
    VISIBILITIES.includes(consent.visibility) &&
    (consent.since === undefined || typeof consent.since === "number") &&
    typeof consent.at === "number"
  )
}
