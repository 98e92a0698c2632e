import { reasoningEfforts, type JsonObject, type ReasoningEffort } from '@tallystick/core/vocabulary'
import * as z from 'zod'

/** The fields of a run that both kinds of request have. */
export interface GivenFields {
  /** The agent. */
  readonly model: string
  readonly stream?: boolean | null | undefined
  readonly metadata?: JsonObject | null | undefined
  readonly temperature?: number | null | undefined
  readonly top_p?: number | null | undefined
  readonly parallel_tool_calls?: boolean | null | undefined
  readonly tools?: readonly NamedTool[] | null | undefined
  readonly tool_choice?: GivenChoice | null | undefined
}

type Maybe<Value> = Value | null | undefined

/** The model settings of a run. */
export interface FacadeSettings {
  readonly temperature?: number
  readonly topP?: number
  readonly stop?: readonly string[]
  readonly seed?: number
  readonly maxOutputTokens?: number
  readonly reasoningEffort?: ReasoningEffort
}

/** Returns the settings that a request gives; `undefined` if it gives none. */
export function settingsFrom(given: {
  readonly [Name in keyof FacadeSettings]: Maybe<FacadeSettings[Name]>
}): FacadeSettings | undefined {
  const settings = Object.fromEntries(Object.entries(given).filter(([, value]) => value != null))
  return Object.keys(settings).length > 0 ? settings : undefined
}

const why = 'the agent and its server decide that. Leave it out'

/** A field that accepts only its default: any other value would have no effect. */
function only<const Value extends string | number | boolean>(
  ...values: readonly [Value, ...Value[]]
): z.ZodType {
  const allowed = values.map((value) => JSON.stringify(value)).join(' or ')
  return z.literal(values, { error: `can only be ${allowed} here: ${why}` }).nullish()
}

const noneOf: z.ZodType = z.array(z.never({ error: `has to be empty: ${why}` })).nullish()
const anything: z.ZodType = z.unknown().optional()

/** How much a model is to reason. */
export const effort: z.ZodType<ReasoningEffort> = z.enum(reasoningEfforts)
/** How many tokens a reply may have. */
export const tokens: z.ZodType<number> = z.int().positive()

/** A tool in a request. A client can only name tools of the agent: the agent decides which tools its model may call. */
export interface NamedTool {
  readonly type: string
  readonly name?: string | undefined
  readonly function?: { readonly name: string } | undefined
}

const namedTool: z.ZodType<NamedTool> = z.looseObject({
  type: z.string(),
  name: z.string().optional(),
  function: z.looseObject({ name: z.string() }).optional(),
})

/** Whether the model may, must or must not call tools. */
export type GivenChoice = 'auto' | 'none' | 'required' | NamedTool

const toolChoice: z.ZodType<GivenChoice> = z.union([z.enum(['auto', 'none', 'required']), namedTool])

type Neutral<Names extends string> = Readonly<Record<Names, z.ZodType>>

/**
 * Fields of both kinds of request without effect: hints about caches, safety and billing, and fields that accept only
 * their default.
 */
export const neutralFields: Neutral<
  | 'user'
  | 'safety_identifier'
  | 'prompt_cache_key'
  | 'prompt_cache_retention'
  | 'service_tier'
  | 'store'
  | 'top_logprobs'
> = {
  user: anything,
  safety_identifier: anything,
  prompt_cache_key: anything,
  prompt_cache_retention: anything,
  service_tier: only('auto', 'default'),
  store: only(true),
  top_logprobs: only(0),
}

type Checks<Fields> = { readonly [Name in keyof Fields]-?: z.ZodType<Fields[Name]> }

/** The fields of both kinds of request that a run follows. */
export const givenFields: Checks<GivenFields> = {
  model: z.string(),
  stream: z.boolean().nullish(),
  metadata: z.record(z.string(), z.json()).nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  tools: z.array(namedTool).nullish(),
  tool_choice: toolChoice.nullish(),
}

/** Further such fields of Chat Completions. */
export const neutralChatFields: Neutral<
  | 'n'
  | 'logprobs'
  | 'frequency_penalty'
  | 'presence_penalty'
  | 'logit_bias'
  | 'modalities'
  | 'response_format'
> = {
  n: only(1),
  logprobs: only(false),
  frequency_penalty: only(0),
  presence_penalty: only(0),
  logit_bias: z.strictObject({}, { error: `has to be empty: ${why}` }).nullish(),
  modalities: z.tuple([z.literal('text', { error: `can only be ["text"] here: ${why}` })]).nullish(),
  response_format: z
    .strictObject({ type: z.literal('text', { error: `can only be "text" here: ${why}` }) })
    .nullish(),
}

/** Further such fields of the Responses API. */
export const neutralResponseFields: Neutral<
  'instructions' | 'background' | 'truncation' | 'include' | 'text'
> = {
  instructions: only(''),
  background: only(false),
  truncation: only('disabled'),
  include: noneOf,
  text: z
    .strictObject({
      format: z
        .strictObject({ type: z.literal('text', { error: `can only be "text" here: ${why}` }) })
        .nullish(),
    })
    .nullish(),
}

/** Returns a choice of tools in the words of a run. */
export function choiceOf(
  given: GivenChoice | null | undefined,
): 'auto' | 'any' | 'none' | { readonly type: 'tool'; readonly name: string } | undefined {
  if (given == null) return undefined
  if (given === 'required') return 'any'
  return typeof given === 'string' ? given : { type: 'tool', name: nameOf(given) }
}

/** The name of a tool, wherever its API puts it. */
export function nameOf({ type, name, function: called }: NamedTool): string {
  return name ?? called?.name ?? type
}
