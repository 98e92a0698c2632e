/** One call of the tool `look`. */
export interface ScriptedCall {
  readonly id: string
  readonly input: { readonly at: number }
}

/** One reply of a model, in the deltas in which it arrives. */
export interface ScriptedReply {
  readonly deltas: readonly string[]
  readonly calls: readonly ScriptedCall[]
}

/** What the model of every subject says, and how long the tool takes. All subjects play the same script. */
export interface Script {
  /** The reply of a turn, from 0. A reply without calls ends the run. */
  readonly replyOf: (turn: number) => ScriptedReply
  /** How many turns the script may come to. */
  readonly maxTurns: number
  /** How many calls a turn may hold. */
  readonly maxCalls: number
  /** How long the tool takes, in milliseconds; 0: it answers at once. */
  readonly toolMs: number
}

export const instructions = 'Look at everything.'
export const question = 'Look.'
export const toolName = 'look'
export const toolDescription = 'Looks at a place and says what is there.'
/** Tokens that each reply reports. */
export const usage: { readonly inputTokens: number; readonly outputTokens: number } = {
  inputTokens: 120,
  outputTokens: 20,
}

/** So many deltas of five characters. */
export function deltasOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `w${String(index % 1000).padStart(3, '0')} `)
}

/** The tool of every subject. */
export async function look(script: Script, { at }: { readonly at: number }): Promise<string> {
  if (script.toolMs > 0) await new Promise((resolve) => setTimeout(resolve, script.toolMs))
  return `seen ${at}`
}

/** One turn that only says something. */
export function textScript(deltas: number): Script {
  const reply = { deltas: deltasOf(deltas), calls: [] }
  return { replyOf: () => reply, maxTurns: 1, maxCalls: 0, toolMs: 0 }
}

/** Turns of twenty deltas and one call each; the last turn has no call, and comes early where the time is up. */
export function turnsScript(turns: number, isLate: () => boolean = () => false): Script {
  const deltas = deltasOf(20)
  return {
    replyOf: (turn) => ({
      deltas,
      calls: turn >= turns - 1 || isLate() ? [] : [{ id: `call_${turn}`, input: { at: turn } }],
    }),
    ...{ maxTurns: turns, maxCalls: 1, toolMs: 0 },
  }
}

/** One turn of many calls, and one that ends the run. */
export function fanOutScript(calls: number, toolMs: number): Script {
  const all = Array.from({ length: calls }, (_, at) => ({ id: `call_${at}`, input: { at } }))
  const deltas = deltasOf(20)
  return {
    replyOf: (turn) => ({ deltas, calls: turn === 0 ? all : [] }),
    ...{ maxTurns: 2, maxCalls: calls, toolMs },
  }
}

/** What a reader of a run got. */
export interface Seen {
  /** The text of all deltas, in the order in which they came. */
  readonly text: string
  readonly replies: number
  readonly results: number
}

/** Throws unless the reader got every delta and every result of so many replies. */
export function requireWhole(script: Script, seen: Seen): void {
  let text = ''
  let results = 0
  for (let turn = 0; turn < seen.replies; turn++) {
    const reply = script.replyOf(turn)
    text += reply.deltas.join('')
    // The last reply of a run has no calls, whatever the script says of its turn.
    if (turn < seen.replies - 1) results += reply.calls.length
  }
  if (seen.replies === 0) throw new Error('The model was not called.')
  if (seen.text !== text) {
    throw new Error(`The text did not arrive whole: ${seen.text.length} of ${text.length} characters.`)
  }
  if (seen.results !== results) throw new Error(`${seen.results} of ${results} tool results arrived.`)
}
