import type { Tool } from '@tallystick/core'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'
import type { Order, OrderBook } from './order-book.ts'

/**
 * Places an order. A write: a person approves it first, and the book takes one order per key. If the process dies between
 * the order and its record, a resume asks the book whether the order was placed instead of placing it again.
 */
export function placeOrder(book: OrderBook): Tool {
  return defineTool({
    name: 'place_order',
    description:
      'Orders units of a product from its supplier. Use it once, with the whole quantity, when the quantity is known.',
    input: z.object({
      sku: z
        .string()
        .regex(/^[A-Z0-9-]+$/)
        .describe('the product, as in products.sku'),
      quantity: z.int().min(1).max(100_000).describe('units, in whole cases'),
    }),
    effect: 'write',
    approval: 'always',
    recovery: 'reconcile',
    execute: (order, { idempotencyKey }) => confirmation(book.place(idempotencyKey, order)),
    reconcile: (_order, { idempotencyKey }) => {
      const placed = book.find(idempotencyKey)
      return placed === undefined ? { happened: false } : { happened: true, result: confirmation(placed) }
    },
  })
}

/** The supplier's reply to an accepted order. */
function confirmation({ orderId, sku, quantity }: Order): object {
  return { status: 'placed', orderId, sku, quantity }
}
