import { DexError } from "../core/error.ts"
import { repositoryIdentity } from "../git/identity.ts"

const MAX_KEY_LENGTH = 200
/** Matches a host and a path, or a name that a team chose, but never a path on one machine. */
const KEY = /^[a-z0-9][\w.~+-]*(?:\/[\w.~+@-]+)*$/i

/** A project's name on every machine: the address of its git remote. Undefined if it has none. */
export async function keyOfProject(folder: string): Promise<string | undefined> {
  const { remote } = await repositoryIdentity(folder)
  return remote !== undefined && /^[^/\s]+\.[^/\s]+\/./.test(remote) && isProjectKey(remote) ? remote : undefined
}

export function requireValidKey(key: string): string {
  if (isProjectKey(key)) return key
  throw new DexError(
    "usage",
    `"${key}" cannot be the name of a project on a hub. It looks like github.com/acme/api: letters, digits, dots, dashes and slashes.`,
  )
}

function isProjectKey(key: string): boolean {
  return key.length <= MAX_KEY_LENGTH && KEY.test(key) && !key.split("/").includes("..")
}
