import { z } from 'zod'
import type { Order } from './order-book.ts'
import type { RequestMessage, ToolResultBlock, ToolUseBlock } from './model-server/wire.ts'

/** A tool call with its result, as found in a request. */
export interface Step {
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
  /** The text of the result. */
  readonly text: string
  readonly failed: boolean
}

/** Returns every call of a history with its result, in the order of the calls. */
export function stepsOf(messages: readonly RequestMessage[]): readonly Step[] {
  const blocks = messages.flatMap(({ content }) => content)
  const results = new Map(
    blocks
      .filter((block): block is ToolResultBlock => block.type === 'tool_result')
      .map((block) => [block.tool_use_id, block]),
  )
  return blocks
    .filter((block): block is ToolUseBlock => block.type === 'tool_use')
    .map(({ id, name, input }) => {
      const result = results.get(id)
      return { name, input, text: textOf(result), failed: result?.is_error === true }
    })
}

function textOf(result: ToolResultBlock | undefined): string {
  return (result?.content ?? []).map((block) => ('text' in block ? block.text : '')).join('\n')
}

/** Last month's best seller, as `bestSellerQuery` selects it. */
export interface BestSeller {
  readonly sku: string
  readonly name: string
  /** As in `2026-10`. */
  readonly month: string
  readonly units: number
  readonly revenue_cents: number
  readonly on_hand: number
  readonly case_size: number
}

const bestSeller: z.ZodType<BestSeller> = z.object({
  sku: z.string(),
  name: z.string(),
  month: z.string(),
  units: z.number(),
  revenue_cents: z.number(),
  on_hand: z.number(),
  case_size: z.number(),
})
const queried = z.object({ columns: z.array(z.string()), rows: z.array(z.array(z.unknown())) })

/** Returns the first row of a query's result; `undefined` if there is no row, or it is something else. */
export function readBestSeller(text: string): BestSeller | undefined {
  const result = queried.safeParse(jsonOf(text)).data
  const [row] = result?.rows ?? []
  if (result === undefined || row === undefined) return undefined
  return bestSeller.safeParse(Object.fromEntries(result.columns.map((column, place) => [column, row[place]])))
    .data
}

const fetched = z.object({ status: z.literal(200), body: z.string() })
const quotedRates = z.object({ rates: z.object({ USD: z.number().positive() }) })

/** Returns dollars per euro as the rate service answered; `undefined` if it answered something else. */
export function readRate(text: string): number | undefined {
  const answer = fetched.safeParse(jsonOf(text)).data
  return answer && quotedRates.safeParse(jsonOf(answer.body)).data?.rates.USD
}

/** Returns the number that a calculation gave. */
export function readNumber(text: string): number | undefined {
  const number = Number(text)
  return text.trim() !== '' && Number.isFinite(number) ? number : undefined
}

const placedOrder: z.ZodType<Order> = z.object({ orderId: z.number(), sku: z.string(), quantity: z.number() })

/** Returns the placed order as the order book confirms it. */
export function readOrder(text: string): Order | undefined {
  return placedOrder.safeParse(jsonOf(text)).data
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
