<?php

declare(strict_types=1);

// After `composer install` or, without it, with the packages of Debian: php-guzzlehttp-guzzle and php-illuminate-*.
$composer = __DIR__ . '/../vendor/autoload.php';
if (is_file($composer)) {
    require $composer;
} else {
    require 'GuzzleHttp/autoload.php';
    spl_autoload_register(function (string $class): void {
        $isOurs = str_starts_with($class, 'Tallystick\\');
        $file = str_replace('\\', '/', $isOurs ? substr($class, strlen('Tallystick\\')) : $class) . '.php';
        $path = $isOurs ? __DIR__ . "/../src/$file" : stream_resolve_include_path($file);
        if ($path !== false && is_file($path)) {
            require $path;
        }
    });
}
