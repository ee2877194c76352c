/*
 * Dates and times from a driver's text to ISO 8601, in the form that nearly all rows have: "2024-01-31", and
 * "2024-01-31 10:00:00.123456" in UTC. Returns false for everything else, which serialize/timestamp.rb handles.
 */
#ifndef CASTELLAN_TIMESTAMP_H
#define CASTELLAN_TIMESTAMP_H

#include "buffer.h"
#include "number.h"

static inline int timestamp_pair(const char *text)
{
    return number_digit(text[0]) && number_digit(text[1]) ? (text[0] - '0') * 10 + (text[1] - '0') : -1;
}

static inline int timestamp_last_day(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : days[month - 1];
}

/* Ten bytes: 2024-01-31. */
static inline bool timestamp_day(const char *text)
{
    int century = timestamp_pair(text), year = timestamp_pair(text + 2), month = timestamp_pair(text + 5), day = timestamp_pair(text + 8);
    if (century < 0 || year < 0 || text[4] != '-' || text[7] != '-' || month < 1 || month > 12) return false;
    return day >= 1 && day <= timestamp_last_day(century * 100 + year, month);
}

/* Eight bytes: 10:00:00. */
static inline bool timestamp_clock(const char *text)
{
    int hour = timestamp_pair(text), minute = timestamp_pair(text + 3), second = timestamp_pair(text + 6);
    return text[2] == ':' && text[5] == ':' && hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60;
}

static inline bool timestamp_utc(const char *text, size_t length)
{
    return length == 0 || (length == 1 && *text == 'Z') || (length == 3 && memcmp(text, "+00", 3) == 0) ||
           (length == 6 && memcmp(text, "+00:00", 6) == 0);
}

static inline bool timestamp_append_date(struct buffer *buffer, const char *text, size_t length)
{
    if (length != 10 || !timestamp_day(text)) return false;
    buffer_byte(buffer, '"');
    buffer_append(buffer, text, length);
    buffer_byte(buffer, '"');
    return true;
}

static inline bool timestamp_append(struct buffer *buffer, const char *text, size_t length)
{
    static const char whole[] = "\"0000-00-00T00:00:00.000Z\"";
    size_t digits = 0;
    char *target;
    if (length < 19 || !timestamp_day(text) || (text[10] != ' ' && text[10] != 'T') || !timestamp_clock(text + 11)) return false;
    if (length > 19 && text[19] == '.') {
        while (20 + digits < length && number_digit(text[20 + digits])) digits++;
        if (digits == 0 || digits > 9) return false;
    }
    if (!timestamp_utc(text + 19 + digits + (digits > 0), length - 19 - digits - (digits > 0))) return false;
    buffer_reserve(buffer, sizeof(whole) - 1);
    target = buffer_end(buffer);
    memcpy(target, whole, sizeof(whole) - 1);
    memcpy(target + 1, text, 10);
    memcpy(target + 12, text + 11, 8);
    memcpy(target + 21, text + 20, digits > 3 ? 3 : digits);
    buffer_consumed(buffer, sizeof(whole) - 1);
    return true;
}

/* So many digits of a number, leading zeros included. */
static inline void timestamp_digits(char *target, int count, int number)
{
    while (count--) {
        target[count] = (char)('0' + number % 10);
        number /= 10;
    }
}

/* A count of seconds since 1970 as the same, in the years of four digits. The days of a year are counted from March, so that the
 * one that leap years have is the last: http://howardhinnant.github.io/date_algorithms.html#civil_from_days */
static inline bool timestamp_append_seconds(struct buffer *buffer, long long seconds, long nanoseconds)
{
    char text[] = "0000-00-00 00:00:00.000";
    long long days = seconds / 86400 - (seconds % 86400 < 0), since_march, era, of_era, year_of_era, of_year, month, year;
    int clock = (int)(seconds - days * 86400);
    since_march = days + 719468;
    if (since_march < 0) return false;
    era = since_march / 146097;
    of_era = since_march % 146097;
    year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    month = (5 * of_year + 2) / 153;
    year = year_of_era + era * 400 + (month >= 10);
    if (year < 1 || year > 9999) return false;
    timestamp_digits(text, 4, (int)year);
    timestamp_digits(text + 5, 2, (int)(month < 10 ? month + 3 : month - 9));
    timestamp_digits(text + 8, 2, (int)(of_year - (153 * month + 2) / 5 + 1));
    timestamp_digits(text + 11, 2, clock / 3600);
    timestamp_digits(text + 14, 2, clock / 60 % 60);
    timestamp_digits(text + 17, 2, clock % 60);
    timestamp_digits(text + 20, 3, (int)(nanoseconds / 1000000));
    return timestamp_append(buffer, text, sizeof(text) - 1);
}

#endif
