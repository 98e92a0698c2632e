<?php

declare(strict_types=1);

/** The shop's tools; a folder stands in for its database. */
function shopTools(string $folder): array
{
    return [
        'stock_level' => fn (array $input): string => "{$input['article']}: " . ($input['article'] === 'lamp' ? 3 : 120) . ' pieces',
        'order_goods' => function (array $input, string $callId) use ($folder): string {
            // The call's id is the key of the order, so a worker that repeats the call places no second order.
            $order = "$folder/order-$callId.json";
            if (!file_exists($order)) {
                file_put_contents("$order.new", json_encode($input, JSON_THROW_ON_ERROR));
                rename("$order.new", $order);
            }
            if (getenv('DIES_AFTER_ORDER') === 'yes') {
                exit(9); // The goods are ordered, but the run does not know yet.
            }
            return "{$input['pieces']} pieces of {$input['article']} are ordered";
        },
    ];
}
