import { messagesOf } from '../../machine/messages/history.ts'
import type { TurnChange } from '../../machine/state/rules.ts'
import type { RunState } from '../../machine/state/state.ts'
import { message as messageSchema } from '../../vocabulary/model/content-schema.ts'
import { someSettings } from '../../vocabulary/options/model-settings-check.ts'
import { listOf, maybe, valueThat, type OptionCheck } from '../../vocabulary/options/option.ts'
import { requireOptions } from '../../vocabulary/options/require-options.ts'
import { faultOf } from '../../vocabulary/values/schema.ts'

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
