import { TallystickError, type Ledger, type RunId } from '@tallystick/core'
import { contentText } from '../view/text/content-text.ts'

/** What a run was begun with, as text; empty where that cannot be read, or is gone. */
export async function firstInput(ledger: Ledger, runId: RunId): Promise<string> {
  try {
    for await (const event of ledger.find({ runId, types: ['input_received'] })) {
      return event.type === 'input_received' ? contentText(event.message?.parts ?? []) : ''
    }
  } catch (error) {
    // Damage that came after the summary: verify finds it.
    if (!(error instanceof TallystickError)) throw error
  }
  return ''
}
