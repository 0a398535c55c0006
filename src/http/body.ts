const PARSE_ERROR = -32700
const TOO_LONG = -32000

export type Body = { json: unknown } | { refused: Response }

/**
 * Reads a request's JSON, up to so many bytes. What comes after them is left unread: to cancel it would close the
 * connection before the client has the answer that says why.
 */
export async function readBody(request: Request, most: number): Promise<Body> {
  let text: string | undefined
  try {
    text = Number(request.headers.get("content-length")) > most ? undefined : await bodyText(request, most)
  } catch {
    return refuse(400, PARSE_ERROR, "The request ended before its body did.") // nobody is there to read it
  }
  if (text === undefined) return refuse(413, TOO_LONG, `A request may have ${most} bytes at the most.`)
  try {
    return { json: JSON.parse(text) }
  } catch {
    return refuse(400, PARSE_ERROR, "The body is not JSON. Send one JSON-RPC message.")
  }
}

async function bodyText({ body }: Request, most: number): Promise<string | undefined> {
  if (!body) return ""
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks, length).toString("utf8")
    length += value.length
    if (length > most) return undefined
    chunks.push(value)
  }
}

function refuse(status: number, code: number, message: string): Body {
  return { refused: Response.json({ jsonrpc: "2.0", id: null, error: { code, message } }, { status }) }
}
