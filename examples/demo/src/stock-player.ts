import type { Player, Reply } from './model-server/reply.ts'
import { ratesOrigin } from './task.ts'
import type { BestSeller, Step } from './tool-results.ts'
import { readBestSeller, readNumber, readOrder, readRate, stepsOf } from './tool-results.ts'

/** Selects the product that sold the most units last month, with what is needed to re-order it. */
const bestSellerQuery = [
  "WITH last_month AS (SELECT date(business_date, 'start of month', '-1 month') AS first_day,",
  "date(business_date, 'start of month') AS end_day FROM shop)",
  'SELECT p.sku, p.name, substr(m.first_day, 1, 7) AS month, SUM(s.quantity) AS units,',
  'SUM(s.quantity * s.unit_price_cents) AS revenue_cents, k.on_hand, p.case_size',
  'FROM last_month m JOIN sales s ON s.sold_on >= m.first_day AND s.sold_on < m.end_day',
  'JOIN products p USING (sku) JOIN stock k USING (sku)',
  'GROUP BY p.sku ORDER BY units DESC, p.sku LIMIT 1',
].join(' ')

/**
 * Plays the model for the demo's task: derives the next message, and every number in it, from the tool results in the
 * request. If a tool did not deliver, it says so and stops.
 */
export const stockPlayer: Player = (request) => {
  const steps = stepsOf(request.messages)
  const reply = nextReply(steps)
  if (request.tool_choice?.type !== 'none' || reply.calls.length === 0) return reply
  return says(`I had to stop before I was done. ${knownSoFar(steps)} Nothing more was done after that.`)
}

function nextReply(steps: readonly Step[]): Reply {
  const sales = lastOf(steps, 'sql_query')
  if (sales === undefined) {
    return asks("I will look up last month's best seller in the sales database.", 'sql_query', {
      sql: bestSellerQuery,
    })
  }
  if (sales.failed)
    return says(`I could not read the sales database, so I know no best seller: ${sales.text}`)
  const seller = readBestSeller(sales.text)
  if (seller === undefined)
    return says(`The sales database names no best seller for last month. It says: ${sales.text}`)

  const fetched = lastOf(steps, 'http_fetch')
  if (fetched === undefined) {
    return asks(`${soldText(seller)} Now I need the exchange rate.`, 'http_fetch', {
      url: `${ratesOrigin}/v1/latest?base=EUR&symbols=USD`,
    })
  }
  const rate = fetched.failed ? undefined : readRate(fetched.text)
  if (rate === undefined) {
    return says(
      `${soldText(seller)} I could not get the exchange rate, so I ordered nothing: ${fetched.text}`,
    )
  }
  return withRate(steps, seller, rate)
}

function withRate(steps: readonly Step[], seller: BestSeller, rate: number): Reply {
  const expressions = [
    `round(${seller.revenue_cents} / 100 * ${rate}, 2)`,
    `ceil((${seller.units} * 1.2 - ${seller.on_hand}) / ${seller.case_size}) * ${seller.case_size}`,
  ]
  const calculations = expressions.map((expression) =>
    steps.findLast((step) => step.name === 'calculator' && step.input['expression'] === expression),
  )
  const missing = expressions.filter((_, place) => calculations[place] === undefined)
  if (missing.length > 0) {
    const calls = missing.map((expression) => ({ name: 'calculator', input: { expression } }))
    return {
      text: `One euro is ${rate} dollars. Now the revenue in dollars and the quantity to re-order.`,
      calls,
    }
  }
  const failed = calculations.find((step) => step?.failed === true)
  if (failed !== undefined)
    return says(`${soldText(seller)} I could not calculate the rest, so I ordered nothing: ${failed.text}`)
  const [dollars, quantity] = calculations.map((step) => readNumber(step?.text ?? ''))
  if (dollars === undefined || quantity === undefined) {
    return says(`${soldText(seller)} The calculator gave no numbers, so I ordered nothing.`)
  }
  const known = `${soldText(seller)} At ${rate} dollars a euro that is ${dollars.toFixed(2)} USD.`
  if (quantity <= 0) return says(`${known} With ${seller.on_hand} on hand nothing has to be re-ordered.`)
  return withQuantity(steps, known, { sku: seller.sku, quantity })
}

function withQuantity(
  steps: readonly Step[],
  known: string,
  wanted: { readonly sku: string; readonly quantity: number },
): Reply {
  const ordered = lastOf(steps, 'place_order')
  if (ordered === undefined) {
    const text = `${known} To sell as many again and 20 % more, ${wanted.quantity} have to be re-ordered.`
    return asks(text, 'place_order', { sku: wanted.sku, quantity: wanted.quantity })
  }
  if (ordered.failed) {
    const denied = /denied this call/.test(ordered.text)
    const what = denied ? 'was denied, so it is not placed' : 'is not confirmed'
    return says(`${known} The order of ${wanted.quantity} ${what}: ${ordered.text}`)
  }
  const order = readOrder(ordered.text)
  if (order === undefined)
    return says(`${known} I asked for an order, and this is what came back: ${ordered.text}`)
  return says(`${known} Order ${order.orderId} is placed: ${order.quantity} of ${order.sku}.`)
}

/** Summarises the results in the history, for an answer before the work is done. */
function knownSoFar(steps: readonly Step[]): string {
  const sales = lastOf(steps, 'sql_query')
  const seller = sales === undefined || sales.failed ? undefined : readBestSeller(sales.text)
  const ordered = lastOf(steps, 'place_order')
  const order = ordered === undefined || ordered.failed ? undefined : readOrder(ordered.text)
  return [
    seller === undefined ? 'I do not know the best seller yet.' : soldText(seller),
    order === undefined
      ? 'No order was confirmed.'
      : `Order ${order.orderId} is placed: ${order.quantity} of ${order.sku}.`,
  ].join(' ')
}

function soldText({ name, sku, month, units, revenue_cents }: BestSeller): string {
  const revenue = (revenue_cents / 100).toFixed(2)
  return `The best seller of ${month} is ${name} (${sku}): ${units} units for ${revenue} EUR.`
}

function lastOf(steps: readonly Step[], name: string): Step | undefined {
  return steps.findLast((step) => step.name === name)
}

function asks(text: string, name: string, input: Readonly<Record<string, unknown>>): Reply {
  return { text, calls: [{ name, input }] }
}

function says(text: string): Reply {
  return { text, calls: [] }
}
