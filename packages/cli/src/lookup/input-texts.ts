import type { Ledger, RunId } from '@tallystick/core'
import { firstInputs } from '@tallystick/ledger'
import { contentText } from '../view/text/content-text.ts'

/** What each of these runs was begun with, as text. Runs of which that cannot be read, or is gone, are left out. */
export async function inputTexts(
  ledger: Ledger,
  runIds: readonly RunId[],
): Promise<ReadonlyMap<RunId, string>> {
  const inputs = await firstInputs(ledger, runIds)
  return new Map([...inputs].map(([runId, { message }]) => [runId, contentText(message?.parts ?? [])]))
}
