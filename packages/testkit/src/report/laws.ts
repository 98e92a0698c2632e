/** The laws of a run in words, by number. `docs/laws.md` explains each. */
export const lawWords: Readonly<Record<number, string>> = {
  1: 'every tool request has exactly one result, in its own turn, before the next model call starts',
  2: 'no result without its request, and none of a call that ran without its start',
  3: 'the results of a message stand directly behind it, in the order of its requests',
  4: 'seq is 1, 2, 3 … without gaps; turns, epochs and times never fall',
  5: 'every event is legal in the phase in which it arrives',
  6: 'folding the events up to any seq gives the state that the live run had there',
  7: 'the ledger shows exactly what the model saw',
  8: 'no side effect begins before its start is durable, and no model call before all that it carries is',
  9: 'what is spent and what is granted never passes a limit, over a run and its children',
  10: 'a call in doubt is started again only if its tool is declared safe to be, with the same key',
  11: 'the chain of hashes verifies, and a change of any stored byte is found',
  12: 'the recorded deltas of a message, put together, are the message',
  13: 'an approval is bound to its call, its attempt and its arguments, and allows one execution',
  14: 'every run replays to itself',
  15: 'every inbox entry has an end: taken, refused to its sender, or carried into the next run',
  16: 'the cost of a turn does not grow with what lies behind it, except for what the model is shown',
}

/** What is tested, as a page of the laws names it. */
export type Subject = 'tool' | 'ledger' | 'model' | 'policy' | 'agent'

const page = 'https://github.com/tallystick/tallystick/blob/main/docs/laws.md'

/** The page of a law, or of the promises of a part that a user brings. */
export function linkLaw(of: number | Subject): string {
  return typeof of === 'number' ? `${page}#law-${of}` : `${page}#a-${of}`.replace('#a-agent', '#an-agent')
}
