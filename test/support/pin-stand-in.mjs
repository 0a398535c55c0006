// Lets dex run the stand-in for the local model in this process: a test loads this file into the processes that it starts.
// In STAND_IN_FILES are the checksums of the stand-ins' files. dex itself knows no such variable. Plain JavaScript, because npm
// loads it too and may run on a Node that reads nothing else.

export function pinStandIns() {
  /** @type {Record<string, string>[]} */
  const others = JSON.parse(process.env.STAND_IN_FILES ?? "[]")
  Object.assign(globalThis, { [Symbol.for("dexctx.localModelFiles")]: others })
}

pinStandIns()
