import { createCipheriv, createDecipheriv, createHmac, createSecretKey, randomBytes } from "node:crypto"

// Every conversation has its own key, and what is kept of it is unreadable without. The keys are wrapped by the tenant's, and
// those by the master key, which PostgreSQL never sees. Node looks at plain bytes several times before it takes them for a key:
// made into one here, opening a short text takes a third of the time.

const CIPHER = "aes-256-gcm"
const NONCE_BYTES = 12
const TAG_BYTES = 16
export const KEY_BYTES = 32

export function newKey(): Buffer {
  return randomBytes(KEY_BYTES)
}

/** `about` names what it belongs to: bytes that were moved to another place do not open. */
export function seal(key: Buffer, plain: Uint8Array, about: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, createSecretKey(key), nonce).setAAD(Buffer.from(about))
  const sealed = cipher.update(plain)
  cipher.final()
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed])
}

/** Throws where the key, the bytes or what they belong to is another one. */
export function unseal(key: Buffer, sealed: Uint8Array, about: string): Buffer {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
  const decipher = createDecipheriv(CIPHER, createSecretKey(key), bytes.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(about))
    .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
  const plain = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES))
  decipher.final()
  return plain
}

/** A name that says nothing to who does not have the key. */
export function sealedName(key: Buffer, name: string): Buffer {
  return createHmac("sha256", createSecretKey(key)).update(name).digest()
}
