import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { onTestFinished } from "vitest"

/** A proxy on this machine, which can stand for a network that fails. */
export type TestProxy = {
  port: number
  /** Ends all connections and accepts no more. */
  cut(): void
  /** Nothing arrives any more, in either direction, and nobody is told. */
  silence(): void
  /** What did not arrive while it was silent does now. */
  heal(): void
}

type Connection = { client: Socket; target: Socket }

/** Starts a proxy that connects to the first of these ports at which somebody listens, beginning with another one each time. */
export async function startProxy(...ports: number[]): Promise<TestProxy> {
  const open = new Set<Connection>()
  let state: "open" | "cut" | "silent" = "open"
  let turn = 0
  const pass = ({ client, target }: Connection) => {
    client.pipe(target).pipe(client)
  }
  const join = (client: Socket, [port, ...others]: number[]) => {
    if (port === undefined) return void client.destroy()
    const target = connect(port, "127.0.0.1")
    const refused = () => join(client, others)
    target.once("error", refused).once("connect", () => {
      target.off("error", refused)
      const connection = { client, target }
      open.add(connection)
      for (const [one, other] of [
        [client, target],
        [target, client],
      ] as const)
        one
          .on("error", () => {})
          .on("close", () => {
            open.delete(connection)
            other.destroy()
          })
      if (client.destroyed) target.destroy()
      else if (state === "open") pass(connection)
    })
  }
  const server = createServer((client) => {
    client.on("error", () => {})
    if (state === "cut") client.destroy()
    else {
      const first = turn++ % ports.length
      join(client, [...ports.slice(first), ...ports.slice(0, first)])
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const cut = () => {
    state = "cut"
    for (const { client, target } of open) {
      client.destroy()
      target.destroy()
    }
  }
  onTestFinished(() => {
    cut()
    server.close()
  })
  return {
    port,
    cut,
    silence: () => {
      state = "silent"
      for (const { client, target } of open) {
        client.unpipe(target).pause()
        target.unpipe(client).pause()
      }
    },
    heal: () => {
      if (state === "silent") for (const connection of open) pass(connection)
      state = "open"
    },
  }
}
