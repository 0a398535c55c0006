import { DexError } from "../core/error.ts"
import { repositoryRemotes } from "../git/identity.ts"

const MAX_KEY_LENGTH = 200
/** Matches a host and a path, or a name that a team chose, but never a path on one machine. */
const KEY = /^[a-z0-9][\w.~+-]*(?:\/[\w.~+@-]+)*$/i

/** A project's key, which is the same on every machine: the address of its git remote. Undefined if no remote can be a key. */
export async function keyOfProject(folder: string): Promise<string | undefined> {
  const [remote] = (await repositoryRemotes(folder)).remotes
  return remote !== undefined && /^[^/\s]+\.[^/\s]+\/./.test(remote) && isProjectKey(remote) ? remote : undefined
}

export function requireValidKey(key: string): string {
  if (isProjectKey(key)) return key
  throw new DexError(
    "usage",
    `"${key}" cannot be the name of a project on a hub. Use a name like github.com/acme/api: letters, digits, dots, dashes and slashes.`,
  )
}

function isProjectKey(key: string): boolean {
  return key.length <= MAX_KEY_LENGTH && KEY.test(key) && !key.split("/").includes("..")
}
