import { of } from 'rxjs'
import type { AgentDefinition } from '../events/agent-definition.ts'
import type { Message } from '../events/content.ts'
import type { Handoff } from '../events/event.ts'
import { toTextContent } from '../machine/calls.ts'
import { formatPlainText } from '../machine/history.ts'
import type { Rules } from '../machine/rules.ts'
import {
  createInputReader,
  type InputSchema,
  judgeInput,
  type OutputReader,
  someInputSchema,
  type WrittenInput,
} from '../tools/tool-schema.ts'
import type { Tool } from '../tools/tool.ts'
import { ConfigurationError } from '../values/errors.ts'
import { type JsonObject, omitUndefined } from '../values/json.ts'
import {
  requireAnswer,
  anyObject,
  anyText,
  fields,
  filledText,
  listOf,
  maybe,
  type Schema,
  plainFunction,
  requireOptions,
} from '../values/option.ts'
import { type Agent, definedAgent, type HandoffTarget } from './agent.ts'

export interface FoldHistoryOptions {
  /** The line above the conversation; `What was said and done before you took over:` if not given. `''` for none. */
  readonly heading?: string | undefined
  /** Returns the text of the conversation. Default: `historyText`. Pure, and not async. */
  readonly render?: ((messages: readonly Message[]) => string) | undefined
}

const foldOptions: Schema = fields<FoldHistoryOptions>({
  heading: maybe(anyText),
  render: maybe(plainFunction),
})

/**
 * Returns a filter for handoffs, or for `prepareTurn`, that folds the whole history into one message of the user: the next agent
 * reads what happened as a report, and not as words of its own. Throws a `ConfigurationError` for options that cannot work.
 */
export function foldHistory(
  given: FoldHistoryOptions = {},
): (messages: readonly Message[]) => readonly Message[] {
  requireOptions('foldHistory', foldOptions, given)
  const { heading = 'What was said and done before you took over:', render = formatPlainText } = given
  return (messages) => {
    if (messages.length === 0) return messages
    const rendered = requireAnswer('render of foldHistory', () => render(messages), anyText)
    if (heading + rendered === '') {
      throw new ConfigurationError(
        'render of foldHistory: it returned an empty text, and heading is empty, so the next agent would read nothing of the past. Let it return a text that is not empty.',
      )
    }
    const text = heading === '' ? rendered : `${heading}\n${rendered}`
    return [{ role: 'user', parts: [{ type: 'text', text }] }]
  }
}

/** The filter of `foldHistory()`. */
export const foldedHistory: (messages: readonly Message[]) => readonly Message[] = foldHistory()

export interface HandoffOptions<Schema extends InputSchema = InputSchema> {
  /** Name of the tool that the model calls; `transfer_to_<name>` if not given. */
  readonly toolName?: string | undefined
  /** When to hand over; the agent's own description if not given. */
  readonly description?: string | undefined
  /** Schema of what the next agent needs to know, which the model writes. Default: a `reason` in words. */
  readonly input?: Schema | undefined
  /**
   * Selects the past messages that the next agent sees. Pure; its result is recorded. Calls and results stay paired. It gets
   * the input of the call, too, as the model wrote it. `foldHistory()` makes one such filter.
   */
  readonly filter?:
    | ((messages: readonly Message[], input: WrittenInput<Schema>) => readonly Message[])
    | undefined
  /** `true`, or its options: the next agent sees the past folded into one message, as a filter of `foldHistory` does it. */
  readonly foldHistory?: boolean | FoldHistoryOptions | undefined
}

const handoffOptions = fields<HandoffOptions>(
  {
    toolName: maybe(filledText),
    description: maybe(anyText),
    input: maybe(someInputSchema),
    filter: maybe(plainFunction),
    foldHistory: maybe((value) => (typeof value === 'boolean' ? undefined : foldOptions(value))),
  },
  {
    nestHandoffHistory: 'foldHistory',
  },
)

/** Lets an agent hand the conversation over to another: the model calls a tool, and the other agent continues. */
export function handoff<Context, const Schema extends InputSchema>(
  agent: Agent<unknown, Context>,
  options: HandoffOptions<Schema> = {},
): HandoffTarget<Context> {
  requireOptions('handoff', definedAgent, agent, 'the agent')
  requireOptions('handoff', handoffOptions, options)
  const { description, input, foldHistory: fold = false } = options
  if (fold !== false && options.filter) {
    throw new ConfigurationError(
      `handoff (${agent.name}): filter and foldHistory were given, but both decide what the next agent sees of the past. Give one of them.`,
    )
  }
  const filter = fold === false ? options.filter : foldHistory(fold === true ? {} : fold)
  const about =
    description ?? agent.description ?? `Hands the conversation over to ${agent.name}, who goes on with it.`
  const reader = input && createInputReader(`the handoff to ${agent.name}`, input)
  const tool = createHandoffTool(
    options.toolName ?? toToolName(agent.name),
    about,
    { to: agent.name },
    reader,
  )
  return { to: agent.name, agent, tool, ...omitUndefined({ filter: filter as HandoffTarget['filter'] }) }
}

const handBackOptions = fields<{ readonly toolName?: string | undefined; readonly description: string }>({
  toolName: maybe(filledText),
  description: filledText,
})

/**
 * Lets an agent hand the conversation back to the caller that started the run, such as a person: the run ends as
 * `handed_back`.
 */
export function handBack(
  to: string,
  options: { readonly toolName?: string | undefined; readonly description: string },
): HandoffTarget {
  requireOptions('handBack', filledText, to, 'the name of the agent that continues')
  requireOptions('handBack', handBackOptions, options)
  const tool = createHandoffTool(options.toolName ?? toToolName(to), options.description, { to, back: true })
  return { to, tool }
}

/** Returns the rule that hands a conversation over; `definitionOf` returns the definition of the next agent. */
export function handOffRule(
  handoffs: () => readonly HandoffTarget[],
  definitionOf: (agent: Agent<unknown>) => AgentDefinition,
): NonNullable<Rules['handOff']> {
  return (toolName, messages) => {
    const target = handoffs().find(({ tool }) => tool.name === toolName)
    if (target?.agent === undefined) return undefined
    const definition = definitionOf(target.agent)
    const { to, filter } = target
    if (filter === undefined) return { definition }
    const input = readInput(messages, toolName)
    const subject = `The filter of the handoff to ${to}`
    return { definition, messages: requireAnswer(subject, () => filter(messages, input), listOf(anyObject)) }
  }
}

/** The input of the call that handed over, as the model wrote it: of several calls of the tool, the first that succeeded. */
function readInput(messages: readonly Message[], toolName: string): JsonObject {
  const reply = messages.findLast((message) => message.role === 'assistant')
  const results = messages.findLast((message) => message.role === 'tool')?.results ?? []
  const done = results.find(({ name, outcome }) => name === toolName && outcome === 'success')
  const call = reply?.parts.find((part) => part.type === 'tool_call' && part.toolCallId === done?.toolCallId)
  return call?.type === 'tool_call' ? call.input : {}
}

function toToolName(name: string): string {
  return `transfer_to_${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')}`
}

function createHandoffTool(
  name: string,
  description: string,
  handedTo: Handoff,
  reader?: OutputReader<unknown>,
): Tool {
  const text = handedTo.back
    ? `The conversation goes to ${handedTo.to}.`
    : `The conversation is handed over to ${handedTo.to}, who goes on from here.`
  return {
    name,
    description,
    effect: 'read',
    recovery: 'rerun',
    handoff: handedTo,
    inputSchema: reader?.jsonSchema ?? {
      type: 'object',
      properties: { reason: { type: 'string', description: 'Why you hand over, in one sentence.' } },
      additionalProperties: false,
    },
    check: (input) => (reader ? judgeInput(reader, input) : { kind: 'run' }),
    run: () => of({ type: 'tool_ended', outcome: 'success', content: toTextContent('success', text) }),
  }
}
