import { createHmac, randomBytes } from "node:crypto"

// Signs webhooks as the Standard Webhooks specification requires. With any library for that standard, the receiver can check that
// a message is from dex, complete and recent.

const SECRET_PREFIX = "whsec_"

export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(32).toString("base64")
}

/** The headers of one attempt, with the message's id and the attempt's time. */
export function signedHeaders(secret: string, id: string, at: number, body: string): Record<string, string> {
  const timestamp = Math.floor(at / 1000)
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64")
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": `v1,${signature}` }
}
