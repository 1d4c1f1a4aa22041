/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates as HTTP writes them, always in English and in UTC, whatever the locale. The calendar is
 * computed: an era is 400 years, and a year begins in March, so that the day that may be missing is
 * its last.
 */
#include "http.h"

#include <stdio.h>
#include <string.h>

enum { DAY = 24 * 60 * 60, ERA_DAYS = 146097 };

static const char days[][4] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"}; /* from 1970 on */
static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* Of a day since 1970, not before it: year, month and day of the month, these from 1 on. */
static void civil_of(int64_t day, int64_t *year, unsigned *month, unsigned *of_month)
{
    int64_t z = day + 719468, era = z / ERA_DAYS; /* since March 1st of the year 0 */
    unsigned in_era = (unsigned)(z - era * ERA_DAYS);
    unsigned in_400 = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    unsigned in_year = in_era - (365 * in_400 + in_400 / 4 - in_400 / 100);
    unsigned since_march = (5 * in_year + 2) / 153;

    *of_month = in_year - (153 * since_march + 2) / 5 + 1;
    *month = since_march < 10 ? since_march + 3 : since_march - 9;
    *year = era * 400 + in_400 + (*month <= 2);
}

static int64_t day_of(int64_t year, unsigned month, unsigned of_month)
{
    int64_t y = year - (month <= 2), era = y / 400;
    unsigned in_400 = (unsigned)(y - era * 400);
    unsigned since_march = month > 2 ? month - 3 : month + 9;
    unsigned in_year = (153 * since_march + 2) / 5 + of_month - 1;

    return era * ERA_DAYS + in_400 * 365 + in_400 / 4 - in_400 / 100 + in_year - 719468;
}

void http_date_format(char text[HTTP_DATE], int64_t seconds)
{
    const int64_t last = 253402300799; /* of the year 9999 */
    int64_t s = seconds < 0 ? 0 : seconds > last ? last : seconds, year;
    unsigned month, of_month, in_day = (unsigned)(s % DAY);

    civil_of(s / DAY, &year, &month, &of_month);
    snprintf(text, HTTP_DATE, "%s, %02u %s %04u %02u:%02u:%02u GMT", days[s / DAY % 7],
             of_month % 100, months[month - 1], (unsigned)year % 10000, in_day / 3600 % 100,
             in_day / 60 % 60, in_day % 60);
}

/* `count` digits, or -1. */
static int digits(const char *text, int count)
{
    int n = 0;

    for (int i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        n = n * 10 + text[i] - '0';
    }
    return n;
}

bool http_date_parse(const char *text, size_t len, int64_t *seconds)
{
    char again[HTTP_DATE];
    int day, year, hour, minute, second;

    if (len != 29)
        return false;
    day = digits(text + 5, 2);
    year = digits(text + 12, 4);
    hour = digits(text + 17, 2);
    minute = digits(text + 20, 2);
    second = digits(text + 23, 2);
    if (day < 1 || year < 1970 || hour < 0 || minute < 0 || second < 0)
        return false;
    for (unsigned month = 1; month <= 12; month++) {
        if (memcmp(text + 8, months[month - 1], 3) != 0)
            continue;
        *seconds = day_of(year, month, (unsigned)day) * DAY + hour * 3600 + minute * 60 + second;
        http_date_format(again, *seconds); /* is it one? February 30th is not */
        return memcmp(again, text, len) == 0;
    }
    return false;
}
