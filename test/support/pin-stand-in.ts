// Lets dex run the stand-in for the local model in this process: a test loads this file into the processes that it starts.
// In STAND_IN_FILES are the checksums of the stand-ins' files. dex itself knows no such variable.

export function pinStandIns(): void {
  const others = JSON.parse(process.env.STAND_IN_FILES ?? "[]") as Record<string, string>[]
  Object.assign(globalThis, { [Symbol.for("dexctx.localModelFiles")]: others })
}

pinStandIns()
