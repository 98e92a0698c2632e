import { messagesOf } from '../../machine/history.ts'
import type { TurnChange } from '../../machine/rules.ts'
import type { RunState } from '../../machine/state.ts'
import { message as messageSchema } from '../../events/content.ts'
import { someSettings } from '../../events/model-settings-check.ts'
import { listOf, maybe, type OptionCheck, requireOptions, valueThat } from '../../values/option.ts'
import { faultOf } from '../../values/schema.ts'

/** Refuses messages and settings of a prepared turn that no model could be sent. Messages of the history are known. */
export function requireSendable(agent: string, { history }: RunState, change: TurnChange): void {
  const subject = `prepareTurn of the agent ${agent}`
  const { messages, modelSettings } = Object(change) as TurnChange
  const known = new Set<unknown>(messages === undefined ? [] : messagesOf(history))
  const check: OptionCheck = (value, path) => (known.has(value) ? undefined : aMessage(value, path))
  requireOptions(subject, maybe(listOf(check)), messages, 'messages')
  requireOptions(subject, maybe(someSettings), modelSettings, 'modelSettings')
}

const aMessage = valueThat(
  'a message as the request has them: { role, parts } or, of a tool, { role, results }',
  (value) => faultOf(messageSchema, value) === undefined,
)
