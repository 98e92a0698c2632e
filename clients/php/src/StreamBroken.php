<?php

declare(strict_types=1);

namespace Tallystick;

use RuntimeException;

/** A stream of events ended before the run did. */
final class StreamBroken extends RuntimeException
{
}
