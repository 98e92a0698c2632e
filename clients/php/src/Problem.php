<?php

declare(strict_types=1);

namespace Tallystick;

use RuntimeException;

/** A request that the server refused. Branch on `problemCode`, such as `not_awaiting_approval`; the message is for people. */
final class Problem extends RuntimeException
{
    /** @param string|null $kind of a `ledger_conflict` */
    public function __construct(
        public readonly int $status,
        public readonly string $problemCode,
        string $detail,
        public readonly ?string $kind = null,
    ) {
        parent::__construct("$problemCode: $detail", $status);
    }
}
