import { KEY_BYTES, newKey, seal, sealedName, unseal } from "./keys.ts"

/** Creates and unwraps the keys of tenants with the master key, which PostgreSQL never sees. */
export type Keyring = {
  newTenantKey(slug: string): Buffer
  /** Unwraps the tenant's key, which PostgreSQL stores. */
  tenantKey(tenant: { slug: string; wrapped_key: Buffer }): TenantKey
}

export type TenantKey = {
  newConversationKey(): { key: Buffer; wrapped: Buffer }
  conversationKey(wrapped: Buffer): Buffer
  /** A keyed hash of a name. The hub keeps it to recognise a conversation that was forgotten. */
  name(plainName: string): Buffer
  /** A keyed hash by which the lines of a file or a commit are found in one project. */
  lineName(project: number, plainName: string): Buffer
  /** A keyed hash of a word, or of the beginning of one, for a search engine that must not know the words. */
  word(plainWord: string): string
}

const CONVERSATION = "conversation key"
/** Shorter than a complete hash, to save space. Every hit is compared with the sealed name again. */
const LINE_NAME_BYTES = 16
/** Among a million different words, two have the same hash with a probability of 1 in 37 million. */
const WORD_BYTES = 8

export function openKeyring(masterKey: Buffer): Keyring {
  if (masterKey.length !== KEY_BYTES) throw new Error(`The master key has ${masterKey.length} bytes; it needs 32.`)
  const tenantKeys = new Map<string, TenantKey>()
  return {
    newTenantKey: (slug) => seal(masterKey, newKey(), `tenant ${slug}`),
    tenantKey: ({ slug, wrapped_key }) => {
      // A tenant may be deleted, and another one may get its name.
      const name = `${slug} ${wrapped_key.toString("base64")}`
      const unwrapped = tenantKeys.get(name)
      if (unwrapped) return unwrapped
      const tenant = withTenantKey(unseal(masterKey, wrapped_key, `tenant ${slug}`))
      tenantKeys.set(name, tenant)
      return tenant
    },
  }
}

function withTenantKey(tenant: Buffer): TenantKey {
  const linesKey = sealedName(tenant, "lines")
  const wordsKey = sealedName(tenant, "words")
  return {
    newConversationKey: () => {
      const key = newKey()
      return { key, wrapped: seal(tenant, key, CONVERSATION) }
    },
    conversationKey: (wrapped) => unseal(tenant, wrapped, CONVERSATION),
    name: (plainName) => sealedName(tenant, plainName),
    lineName: (project, plainName) => sealedName(linesKey, `${project} ${plainName}`).subarray(0, LINE_NAME_BYTES),
    word: (plainWord) => sealedName(wordsKey, plainWord).subarray(0, WORD_BYTES).toString("base64url"),
  }
}
