import { salesSchema } from './sales-database.ts'

/**
 * Where the model finds the rate service. The tool maps it to the port that the service has in this process, so that
 * neither the model nor any digest in the ledger depends on a port.
 */
export const ratesOrigin = 'http://rates.internal'

/** The default task. */
export const question =
  'Which product sold the most units last month? Tell me its revenue in US dollars, work out how many of it we ' +
  'have to re-order, and place the order.'

/** The agent's instructions. */
export const instructions = `You buy stock for Ridge & Tarn Outfitters, a shop whose prices are in euros.

The sales database (SQLite) has these tables:
${salesSchema}
The shop's calendar is in the data: "last month" is the calendar month before shop.business_date. Money is in cents.

Exchange rates: GET ${ratesOrigin}/v1/latest?base=EUR&symbols=USD answers JSON with the latest rate.

How much to re-order: enough whole cases that, with what is on hand, last month's units could be sold again with 20 % more, that is ceil((units * 1.2 - on_hand) / case_size) * case_size, and nothing if that is not more than zero.

Work with the tools. Take every number from their results, and calculate with the calculator, not in your head. A person approves each order before it is placed; if it is denied, do not order again. Answer in two or three sentences with the product, the units sold, the revenue in euros and in dollars, the rate, and what was ordered. If something did not work, say so plainly.`
