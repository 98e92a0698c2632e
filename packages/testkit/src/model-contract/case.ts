import type { Model } from '@tallystick/core'
import { describeDifference } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'

/** A reply for a model to give, which every wire can express. */
export interface ContractReply {
  /** The pieces of the reasoning. Wires that show no reasoning leave it out. */
  readonly reasoning?: readonly string[]
  /** The pieces of the text. */
  readonly text?: readonly string[]
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly input: JsonObject }[]
  readonly stop: 'end' | 'tool_use' | 'max_tokens'
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number }
}

/** The service's answer to a call. */
export type Scene =
  | {
      readonly type: 'reply'
      /** The reply; or how it is made from the names by which the request offers its tools on the wire. */
      readonly reply: ContractReply | ((toolNames: readonly string[]) => ContractReply)
      /** How many events of the wire come; all of them, where this is left out. */
      readonly events?: number
      /** After them: a proper end (the default), a broken connection, or nothing. */
      readonly ending?: 'end' | 'break' | 'stall'
      /** Events come in pieces of so many bytes, whatever their borders. */
      readonly pieceBytes?: number
    }
  /** An answer of another status. Its words repeat the harness's secret, if that has one. */
  | { readonly type: 'refusal'; readonly status: number; readonly retryAfterSeconds?: number }
  /** A web page of status 200, as a proxy or a login puts in place of an answer. */
  | { readonly type: 'page' }
  /** Nothing comes, not even the beginning of an answer. */
  | { readonly type: 'mute' }
  /** No server listens at the address. */
  | { readonly type: 'nobody' }

/** A model with prepared answers to its next calls. */
export interface Stage {
  readonly model: Model
  /** The request of each call so far, as the other side read it. */
  readonly bodies: readonly unknown[]
  /** Resolves when the call of that number, from 0, has arrived at the other side. */
  begun(place: number): Promise<void>
  /** Resolves when the other side has seen the connection of that call close. */
  closed(place: number): Promise<void>
  close(): Promise<void>
}

/** How the contract plays with an adapter. `httpHarness` makes one for any that speaks HTTP. */
export interface ModelHarness {
  /** Sets the scenes for the next calls, in turn; the last one stays for all that follow. */
  stage(scenes: readonly Scene[]): Promise<Stage>
  /** How many events a reply is on this wire, and how many of them prove it whole: without the last of these it is cut. */
  measure(reply: ContractReply): { readonly events: number; readonly proof: number }
  /** A key that the model got, and that must appear nowhere. */
  readonly secret?: string
  /** The rules of the vendor that a request breaks, one line each; none if nothing is known of them. */
  brokenRules?(body: unknown): readonly string[]
  /** Abilities that this wire lacks. Cases that need them are left out. */
  readonly lacks?: readonly Need[]
}

/**
 * Abilities that a promise needs:
 * - `reasoning`: it shows thinking
 * - `connection`: calls go over HTTP, which can break, be refused and stay silent; a model in the same process lacks it
 * - `names`: it has rules for the names of tools, so that some have to be changed on the way
 */
export type Need = (typeof needs)[number]
export const needs = ['reasoning', 'connection', 'names'] as const

/** One promise of the `Model` port, and how to find out whether an adapter keeps it. */
export interface ModelContractCase {
  /** The promise, as a claim. */
  readonly promise: string
  /** Skip the case, with that reason, where the harness lacks it. */
  readonly needs?: Need
  /** Rejects with an error that says what was expected and what was found. Never sleeps; a model that hangs, hangs it. */
  readonly run: (harness: ModelHarness) => Promise<void>
}

/** A promise that every model keeps. */
export function checkModel(promise: string, run: ModelContractCase['run']): ModelContractCase {
  return { promise, run }
}

/** A promise that means something only with an ability. */
export function checkAbility(needs: Need, promise: string, run: ModelContractCase['run']): ModelContractCase {
  return { promise, needs, run }
}

/** Throws unless it holds. `what` is the claim. */
export function require(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`Not so: ${what}.`)
}

/** Throws unless the two are the same, as JSON. `what` names the thing. */
export function requireEqual(found: unknown, expected: unknown, what: string): void {
  const difference = describeDifference(found ?? null, expected ?? null)
  if (difference) throw new Error(`${what}: expected ${difference.expected}, found ${difference.found}.`)
}
