import { consentFor, readHub } from "../../config/hub.ts"
import { DexError } from "../../core/error.ts"
import { type HubClient, openHub } from "../../hub/client.ts"
import { keyOfProject } from "../../hub/project-key.ts"
import type { Dex } from "../context.ts"

// Who is let into a project on the hub: what its owners do.

/** What is decided with `dex hub requests approve bob`, or all that waits. */
export function requests(dex: Dex, words: string[]) {
  const [verb, name, project, ...more] = words
  if (verb === undefined) return withHub(dex, async (hub) => ({ requests: await hub.requests() }))
  if ((verb !== "approve" && verb !== "deny") || name === undefined || more.length > 0)
    throw new DexError("usage", "For example: dex hub requests approve bob. `dex hub requests` lists them.")
  return withHub(dex, async (hub) => {
    const key = project ?? (await onlyRequestOf(hub, name, () => keyHere(dex)))
    return { access: await hub.decide(key, name, verb) }
  })
}

export function grant(dex: Dex, [name, project, ...more]: string[], level = "write") {
  if (name === undefined || more.length > 0)
    throw new DexError("usage", "For example: dex hub grant bob github.com/acme/api --level read")
  return withHub(dex, async (hub) => ({ access: await hub.grant(project ?? (await keyNeeded(dex)), name, level) }))
}

export function members(dex: Dex, [project, ...more]: string[]) {
  if (more.length > 0) throw new DexError("usage", "For example: dex hub members github.com/acme/api")
  return withHub(dex, async (hub) => ({ members: await hub.members(project ?? (await keyNeeded(dex))) }))
}

/** Asks as the person who is logged in. */
export async function withHub<T>(dex: Dex, work: (hub: HubClient) => Promise<T>): Promise<T> {
  const { address, token } = readHub(dex.home)
  if (address === undefined || token === undefined)
    throw new DexError("no_hub", "You are not logged in. Log in first: dex hub login ADDRESS")
  const hub = openHub({ address, token, otherwise: "Nothing was changed." })
  try {
    return await work(hub)
  } finally {
    hub.close()
  }
}

/** Somebody usually asks for one project. For several, it is the one of this folder. */
async function onlyRequestOf(hub: HubClient, name: string, here: () => Promise<string | undefined>): Promise<string> {
  const keys = (await hub.requests()).filter(({ member }) => member === name).map(({ project }) => project)
  if (keys.length === 1) return keys[0]!
  if (keys.length === 0)
    throw new DexError("not_found", `${name} has no request that you can answer. \`dex hub requests\` lists them.`)
  const key = await here()
  if (key !== undefined && keys.includes(key)) return key
  throw new DexError(
    "usage",
    `${name} asks for ${keys.join(", ")}. Say which: dex hub requests approve ${name} PROJECT`,
  )
}

/** What the hub calls the project of this folder. */
async function keyHere(dex: Dex): Promise<string | undefined> {
  const shared = consentFor(readHub(dex.home), dex.project, dex.machine.platform)
  return shared?.key ?? (await keyOfProject(dex.project))
}

async function keyNeeded(dex: Dex): Promise<string> {
  const key = await keyHere(dex)
  if (key !== undefined) return key
  throw new DexError(
    "usage",
    "Say which project, as the hub calls it: github.com/acme/api. `dex hub status` lists yours.",
  )
}
