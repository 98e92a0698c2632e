import type { OutsideCommand } from '../../vocabulary/events/command.ts'
import type { SettledResult } from './runtime.ts'

/** What a caller says of how a deferred call ended, as the command says it. */
export function settledResult(
  result: SettledResult,
): Pick<Extract<OutsideCommand, { type: 'settle' }>, 'outcome' | 'content'> {
  if (typeof result === 'string') return { outcome: 'success', content: [{ type: 'text', text: result }] }
  if ('failed' in result) return { outcome: 'failed', content: [{ type: 'text', text: result.failed }] }
  return { outcome: 'success', content: result }
}
