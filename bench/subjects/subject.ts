import type { Script, ScriptedReply, Seen } from './script.ts'

/** A runtime for agents that is measured. */
export interface Subject {
  /** Makes an agent that plays the script, with a store in the folder where the subject has one. */
  open(script: Script, place: Place): Promise<OpenedSubject>
}

/** Where a subject may keep things. */
export interface Place {
  /** An empty folder. */
  readonly folder: string
  /** A Postgres server, in the cases that need one. */
  readonly postgres?: string | undefined
}

/** An agent that is ready to run. */
export interface OpenedSubject {
  /** Runs the whole script once; in a conversation, after what was said there. */
  run(conversation?: string): Promise<Seen>
  /** Throws unless what is stored is sound; for subjects that can say so. */
  verify?(): Promise<void>
  close(): Promise<void>
}

/**
 * The replies of runs that follow each other: gives the one that comes next, and begins anew after the last. The id of a call is
 * unique, as vendors make them.
 */
export function replies(script: Script): { readonly next: () => ScriptedReply } {
  let turn = 0
  let made = 0
  return {
    next() {
      const { deltas, calls } = script.replyOf(turn)
      turn = calls.length === 0 ? 0 : turn + 1
      return { deltas, calls: calls.map(({ input }) => ({ id: `call_${++made}`, input })) }
    },
  }
}
