import { DexError } from "../core/error.ts"
import { repositoryIdentity } from "../git/identity.ts"

const LONGEST_KEY = 200
/** A host and a way, or a name that a team gave: never a path of one machine. */
const KEY = /^[a-z0-9][\w.~+-]*(?:\/[\w.~+@-]+)*$/i

/** What a project is called on every machine: where it is fetched from. Undefined where git does not say. */
export async function keyOfProject(folder: string): Promise<string | undefined> {
  const { remote } = await repositoryIdentity(folder)
  return remote !== undefined && /^[^/\s]+\.[^/\s]+\/./.test(remote) && isProjectKey(remote) ? remote : undefined
}

export function checkedKey(key: string): string {
  if (isProjectKey(key)) return key
  throw new DexError(
    "usage",
    `"${key}" cannot be the name of a project on a hub. It looks like github.com/acme/api: letters, digits, dots, dashes and slashes.`,
  )
}

function isProjectKey(key: string): boolean {
  return key.length <= LONGEST_KEY && KEY.test(key) && !key.split("/").includes("..")
}
