import { KEY_BYTES, newKey, seal, sealedName, unseal } from "./keys.ts"

/** Encrypts and decrypts with keys that only the hub's process has. */
export type Keyring = {
  newTenantKey(slug: string): Buffer
  /** Unwraps the tenant's key, which PostgreSQL stores. */
  tenantKey(tenant: { slug: string; wrapped_key: Buffer }): TenantKey
}

export type TenantKey = {
  newConversationKey(): { key: Buffer; wrapped: Buffer }
  conversationKey(wrapped: Buffer): Buffer
  /** A keyed hash of a name. It identifies a conversation after it was forgotten. */
  name(plainName: string): Buffer
}

const CONVERSATION = "conversation key"

export function openKeyring(masterKey: Buffer): Keyring {
  if (masterKey.length !== KEY_BYTES) throw new Error(`The master key has ${masterKey.length} bytes; it needs 32.`)
  const tenantKeys = new Map<string, TenantKey>()
  return {
    newTenantKey: (slug) => seal(masterKey, newKey(), `tenant ${slug}`),
    tenantKey: ({ slug, wrapped_key }) => {
      const unwrapped = tenantKeys.get(slug)
      if (unwrapped) return unwrapped
      const tenant = withTenantKey(unseal(masterKey, wrapped_key, `tenant ${slug}`))
      tenantKeys.set(slug, tenant)
      return tenant
    },
  }
}

function withTenantKey(tenant: Buffer): TenantKey {
  return {
    newConversationKey: () => {
      const key = newKey()
      return { key, wrapped: seal(tenant, key, CONVERSATION) }
    },
    conversationKey: (wrapped) => unseal(tenant, wrapped, CONVERSATION),
    name: (plainName) => sealedName(tenant, plainName),
  }
}
