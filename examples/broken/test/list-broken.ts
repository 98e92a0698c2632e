/** Runs every case of a contract: the promises that are broken, each with what the testkit says of it. */
export async function listBroken(
  cases: readonly { readonly promise: string; readonly run: () => Promise<void> }[],
): Promise<Readonly<Record<string, string>>> {
  const broken: Record<string, string> = {}
  for (const { promise, run } of cases) {
    await run().catch((error: Error) => {
      broken[promise] = error.message
    })
  }
  return broken
}
