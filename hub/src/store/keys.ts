import { createCipheriv, createDecipheriv, createHmac, createSecretKey, randomBytes } from "node:crypto"

// Every conversation has its own key, without which its data is unreadable. These keys are wrapped with the tenant's key, and
// that with the master key, which PostgreSQL never sees. Node checks plain bytes several times before it uses them as a key: with
// createSecretKey, decrypting a short text takes a third of the time.

const CIPHER = "aes-256-gcm"
const NONCE_BYTES = 12
const TAG_BYTES = 16
export const KEY_BYTES = 32

export function newKey(): Buffer {
  return randomBytes(KEY_BYTES)
}

/** Encrypts. `purpose` says what the bytes belong to, so that they cannot be decrypted as something else. */
export function seal(key: Buffer, plain: Uint8Array, purpose: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, createSecretKey(key), nonce).setAAD(Buffer.from(purpose))
  const sealed = cipher.update(plain)
  cipher.final()
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed])
}

/** Decrypts. Throws if the key, the bytes or `purpose` is wrong. */
export function unseal(key: Buffer, sealed: Uint8Array, purpose: string): Buffer {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
  const decipher = createDecipheriv(CIPHER, createSecretKey(key), bytes.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(purpose))
    .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
  const plain = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES))
  decipher.final()
  return plain
}

/** A keyed hash of a name. It reveals nothing without the key. */
export function sealedName(key: Buffer, name: string): Buffer {
  return createHmac("sha256", createSecretKey(key)).update(name).digest()
}
