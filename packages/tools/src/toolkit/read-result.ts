import { type Ledger, type Message, type RunId, joinText, type Tool } from '@tallystick/core'
import {
  leastResultChars,
  option,
  readResultName,
  readStart,
  requireOptions,
} from '@tallystick/core/internal'
import { type EventOf, extractRunId, type ToolCallId, type UserPart } from '@tallystick/core/vocabulary'
import { defineTool } from '../define/define-tool.ts'
import { ToolError } from '../define/outcome.ts'

export interface ReadResultOptions {
  /** The ledger of the runs. */
  readonly ledger: Pick<Ledger, 'read' | 'find'>
  /** The most characters of one answer. Default: 8,000. */
  readonly maxChars?: number | undefined
}

const { fields, maybe, numberFrom, valueThat } = option
const options = fields<ReadResultOptions>({
  ledger: valueThat('the ledger of the runs', (value) => typeof Object(value).find === 'function'),
  maxChars: maybe(numberFrom(leastResultChars, { whole: true })),
})

/** More links between a run and the one whose result it read than any conversation needs. */
const maxLinks = 50

/**
 * A tool that reads the part of a long result which `maxResultChars` left out of what the model was shown. It reads results of
 * its own run, and of those runs whose history the run began with: of these, what its agent was shown; never one that a
 * guardrail withheld, a filter of a handoff left out, or an edit of the past removed.
 */
export function readResult(given: ReadResultOptions): Tool {
  requireOptions('readResult', options, given)
  const { ledger, maxChars = 8_000 } = given
  return defineTool({
    name: readResultName,
    description:
      'Reads a part of a tool result that was too long to be shown whole. Use it with the call and the place that are named ' +
      'where the result was cut. With find, it reads from the next place at which that text occurs.',
    input: {
      type: 'object',
      properties: {
        call: { type: 'string', description: 'The call whose result is read.' },
        from: { type: 'integer', minimum: 0, description: 'The first character to read. Default: 0.' },
        find: { type: 'string', minLength: 1, description: 'A text to look for, from there on.' },
      },
      required: ['call'],
      additionalProperties: false,
    } as const,
    effect: 'read',
    maxResultChars: maxChars + 500,
    execute: async (input, { runId, messages }) => {
      const { call, from = 0, find } = input as { call: string; from?: number; find?: string }
      const text = await joinTexts({ ledger, ownRun: runId, messages: messages() }, call)
      return readPage(text, { from, find, maxChars })
    },
  })
}

function readPage(
  text: string,
  {
    from,
    find,
    maxChars,
  }: { readonly from: number; readonly find: string | undefined; readonly maxChars: number },
): string {
  const found = find === undefined ? from : text.indexOf(find, from)
  if (found < 0) return `That text does not occur in the result from character ${from} on.`
  if (found >= text.length)
    return `The result has ${text.length} characters: there is nothing from ${from} on.`
  const start = moveToCharacter(text, found)
  const end = moveToCharacter(text, Math.min(text.length, start + maxChars))
  const more = end < text.length ? ` The next part begins at ${end}.` : ' This is its end.'
  return `Characters ${start} to ${end} of ${text.length}.${more}\n${text.slice(start, end)}`
}

/** The same place, or the one before it where it is within a character. */
function moveToCharacter(text: string, place: number): number {
  return Number(text.codePointAt(place - 1)) > 0xffff ? place - 1 : place
}

/** Who reads: an agent of a run, with its conversation. */
interface Reader {
  readonly ledger: ReadResultOptions['ledger']
  readonly ownRun: RunId
  readonly messages: readonly Message[]
}

async function joinTexts(reader: Reader, call: string): Promise<string> {
  const { ledger, ownRun } = reader
  const runId = extractRunId(call)
  const last = runId && (await findReach(ledger, ownRun, runId))
  if (runId === undefined || last === undefined) throw createNoResult(call)
  const toolCallId = call as ToolCallId
  let result: EventOf<'tool_result'> | undefined
  for await (const event of ledger.find({ runId, toolCallId, types: ['tool_result', 'guardrail_tripped'] })) {
    if (event.type === 'tool_result' && event.seq <= last) result = event
    else if (event.type === 'guardrail_tripped' && event.on === 'tool_output' && event.action !== 'record')
      throw new ToolError(
        'A guardrail has withheld or changed this result, so the rest of it cannot be read.',
      )
  }
  if (result === undefined || !(await wasShown(result, reader))) throw createNoResult(call)
  if (result.removed)
    throw new ToolError('The content of this result was removed, and cannot be read any more.')
  return joinText(result.projected ?? result.content)
}

/**
 * True if the agent was shown a result. The ids of calls can be guessed, so what its conversation holds decides: the result, or
 * the text of it in a conversation that was folded into one message. A summary takes results of the run out of the
 * conversation that the agent has read; what came before a handoff or an edit was not said to it otherwise.
 */
async function wasShown(
  result: EventOf<'tool_result'>,
  { messages, ledger, ownRun }: Reader,
): Promise<boolean> {
  const shown = withoutSpace(messages.flatMap(readTexts).join('\n'))
  const texts = (result.shown ?? result.projected ?? result.content).flatMap(readPartTexts)
  if (texts.every((text) => shown.includes(withoutSpace(text)))) return true
  if (result.runId !== ownRun) return false
  const query = { runId: ownRun, types: ['agent_handed_off', 'history_edited'] as const }
  for await (const event of ledger.find(query)) {
    const keepsAll = event.type === 'agent_handed_off' && event.messages === undefined
    if (event.seq > result.seq && !keepsAll) return false
  }
  return true
}

/** The texts of a message that its model did not write. */
function readTexts(message: Message): readonly string[] {
  if (message.role === 'assistant') return []
  const parts = message.role === 'user' ? message.parts : message.results.flatMap(({ content }) => content)
  return parts.flatMap(readPartTexts)
}

function readPartTexts(part: UserPart): readonly string[] {
  return part.type === 'text' ? [part.text] : []
}

/** A folded conversation indents lines, and each end of a line that some reader knows becomes another. */
function withoutSpace(text: string): string {
  // oxlint-disable-next-line no-control-regex -- Separators of files, groups and records end a line for some readers.
  return text.replaceAll(/[\s\u001c-\u001e\u0085]+/g, '')
}

function createNoResult(call: string): ToolError {
  return new ToolError(
    `There is no result of a call ${call.slice(0, 100)} in this conversation. Give the call that is named where a result was cut.`,
  )
}

/**
 * The last event of a run that this run has a part in: any of its own and of its session's, of a run that it was forked or
 * branched from those up to there. `undefined` if it has none.
 */
async function findReach(
  ledger: ReadResultOptions['ledger'],
  ownRun: RunId,
  runId: RunId,
): Promise<number | undefined> {
  if (ownRun === runId) return Infinity
  const wanted = await readStart(ledger, runId)
  if (wanted === undefined) return undefined
  let own = await readStart(ledger, ownRun)
  for (let links = 0; own && links < maxLinks; links++) {
    if (own.sessionId !== undefined && own.sessionId === wanted.sessionId) return Infinity
    const { parent }: EventOf<'run_started'> = own
    if (parent === undefined || parent.relation === 'child') return undefined
    if (parent.runId === runId) return parent.seq
    own = await readStart(ledger, parent.runId)
  }
  return undefined
}
